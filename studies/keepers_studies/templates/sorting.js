"use strict";
document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0];
  const collator = new Intl.Collator("en", { numeric: true });
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    const isNumber = heading.classList.contains("number");
    const keyOf = (row) => row.cells[column].dataset.key;
    button.addEventListener("click", () => {
      const descending = heading.ariaSort ? heading.ariaSort === "ascending" : isNumber;
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.ariaSort = descending ? "descending" : "ascending";
      // Cells without a value come last, whichever way.
      const order = (one, two) => {
        const [a, b] = [keyOf(one), keyOf(two)];
        if (a === "" || b === "") return (a === "") - (b === "");
        return (descending ? -1 : 1) * (isNumber ? a - b : collator.compare(a, b));
      };
      body.append(...[...body.rows].sort(order));
    });
  });
});
