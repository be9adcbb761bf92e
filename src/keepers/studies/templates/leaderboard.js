"use strict";
(() => {
  // By board: a list by kind of data, of a list by row of the page, of its cells.
  const boards = JSON.parse(document.getElementById("data").textContent);
  const collator = new Intl.Collator("en", { numeric: true });

  // Names are always text, never markup.
  const fill = (element, { text, name, link, tone }) => {
    element.classList.toggle("below", tone === "below");
    element.replaceChildren();
    if (name) {
      const anchor = document.createElement("a");
      anchor.href = link;
      anchor.textContent = name;
      element.append(anchor, " ");
    }
    element.append(text);
  };

  const compare = (a, b) =>
    typeof a === "number" ? a - b : collator.compare(a, b);

  Object.entries(boards).forEach(([name, kinds]) => {
    const table = document.getElementById("board-" + name);
    const headings = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows];
    const select = document.querySelector(`select[data-board="${name}"]`);
    const state = { kind: 0, column: 0, descending: false };
    const cellsOf = (row) => kinds[state.kind][Number(row.dataset.row)];

    // Cells without a value come last, whichever way; equal ones keep their place.
    const order = (one, two) => {
      const [a, b] = [one, two].map((row) => cellsOf(row)[state.column].key);
      if (a === null || b === null) return (a === null) - (b === null);
      return (state.descending ? -1 : 1) * compare(a, b);
    };
    const byPlace = (one, two) => cellsOf(one)[0].key - cellsOf(two)[0].key;
    const sort = () => {
      rows.sort((one, two) => order(one, two) || byPlace(one, two));
      table.tBodies[0].append(...rows);
      headings.forEach((heading, column) => {
        const way = state.descending ? "descending" : "ascending";
        heading.setAttribute("aria-sort", column === state.column ? way : "none");
      });
    };

    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const again = state.column === column;
        state.descending = again ? !state.descending : heading.dataset.first === "descending";
        state.column = column;
        sort();
      });
    });

    if (select) {
      const status = select.parentElement.querySelector("[role=status]");
      select.parentElement.hidden = false;
      select.addEventListener("change", () => {
        state.kind = Number(select.value);
        rows.forEach((row) => {
          // The second cell is the method, which is the same for every kind.
          cellsOf(row).forEach((cell, column) => { if (column !== 1) fill(row.cells[column], cell); });
        });
        sort();
        status.textContent = "The table shows " + select.selectedOptions[0].textContent.trim() + ".";
      });
    }
    sort();
  });
})();
