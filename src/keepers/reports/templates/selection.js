"use strict";
(() => {
  const ROWS_A_PAGE = 25;
  const LONGEST_SHOWN = 60;
  // Past this many features the slider is logarithmic: the interesting k are the small ones.
  const LONGEST_LINEAR_SLIDER = 200;

  const data = JSON.parse(document.getElementById("data").textContent);
  // Letters, a feature each, as runs: "b12C1".
  const spread = (runs) =>
    [...(runs || "").matchAll(/([A-Za-z-])(\d+)/g)].map(([, letter, n]) => letter.repeat(Number(n))).join("");
  const reasons = spread(data.reasons);
  const categories = new Set(data.categories);
  const total = data.names.length;
  const byId = (id) => document.getElementById(id);
  const counted = new Intl.NumberFormat("en-US");
  const collator = new Intl.Collator("en", { numeric: true });
  const state = { k: data.k, page: 0, column: "rank", descending: false, found: [] };

  // ---- names: always text, never markup ----
  // As `display_name` in words.py: control characters, and those that turn the text around them.
  const visible = (text, longest = LONGEST_SHOWN) => {
    if (text.trim() === "") return "(unnamed)";
    const letters = Array.from(text.slice(0, 2 * longest + 2));
    const cut = letters.length > longest || text.length > 2 * longest + 2;
    return (cut ? letters.slice(0, longest - 1).join("") + "…" : text)
      .replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  };
  const nameElement = (text) => {
    const element = document.createElement("bdi");
    element.textContent = visible(text);
    if (element.textContent !== text) element.title = text;
    return element;
  };
  const cell = (className, ...content) => {
    const element = document.createElement("td");
    element.className = className;
    element.append(...content);
    return element;
  };
  const minus = (text) => text.replace(/-/g, "−");
  // One notation down a column: as many decimals as the largest needs; what is smaller is marked.
  const fixedFormat = (values) => {
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    if (largest > 0 && (largest < 1e-4 || largest >= 1e7)) return (value) => minus(value.toExponential(2));
    const decimals = Math.min(Math.max(3 - Math.floor(Math.log10(largest || 1)), 0), 8);
    const smallest = Math.pow(10, -decimals);
    return (value) => {
      if (value === 0) return "0";
      if (Math.abs(value) < smallest) return (value > 0 ? "<" : ">−") + smallest.toFixed(decimals);
      return minus(value.toFixed(decimals));
    };
  };
  const scoreText = fixedFormat(data.scores);
  // ---- the table ----
  // The closest kept feature is known for the k of the selection, and holds for fewer if it stays.
  const nearest = (i) => {
    const near = data.near[i];
    return near && state.k <= data.k && near[0] < state.k ? near : null;
  };
  const rText = (hundredths, i, j) => {
    const size = (Math.abs(hundredths) / 100).toFixed(2);
    return categories.has(i) || categories.has(j) ? size : (hundredths < 0 ? "−" : "+") + size;
  };

  const VALUE = {
    rank: (i) => i,
    score: (i) => data.scores[i],
  };
  const LARGEST_FIRST = new Set(["score"]);

  // Why a feature is not among the first k: known for the k of the selection; what another k cuts
  // off is ranked below it.
  const like = (words, i, near) =>
    [words, nameElement(data.names[near[0]]), ", r = " + rText(near[1], i, near[0])];
  const WHY = {
    b: (i) => {
      const near = nearest(i);
      return ["ranked lower", ...(near ? like("; closest kept: ", i, near) : [])];
    },
    t: (i) => (data.near[i] ? like("too similar to ", i, data.near[i]) : ["too similar to a kept one"]),
    s: (i) => like("same as ", i, data.near[i]),
    n: () => ["no structure beyond chance"],
    f: () => ["too few values"],
    c: () => ["constant"],
    x: () => ["excluded"],
  };
  const whyKept = (i) => {
    const near = nearest(i);
    const words = near ? like("closest kept: ", i, near) : [];
    const [share, other, r] = (state.k === data.k && data.halves[i]) || [];
    if (share !== undefined) words.push((near ? " · " : "") + "in " + share + " % of half-samples");
    if (other !== undefined) {
      words.push(", otherwise ", nameElement(data.names[other]), " (r = " + (r / 100).toFixed(2) + ")");
    }
    return words;
  };
  const reasonOf = (i) => (i < data.k ? "b" : reasons[i - data.k]);
  const GROUPS = [
    ["all", "all features", () => true],
    ["kept", "kept", (i) => i < state.k],
    ["dropped", "not kept", (i) => i >= state.k],
    ["st", "not kept: same as a kept one"],
    ["n", "not kept: no structure"],
    ["f", "not kept: too few values"],
    ["c", "not kept: constant"],
    ["x", "not kept: excluded"],
  ].filter(([letters, , test]) => test || [...letters].some((letter) => reasons.includes(letter)));
  const inGroup = (wanted) => {
    const [letters, , test] = GROUPS.find(([letters]) => letters === wanted);
    return test || ((i) => i >= state.k && letters.includes(reasonOf(i)));
  };

  const findRows = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const belongs = inGroup(byId("which").value);
    const found = [];
    for (let i = 0; i < total; i++) {
      if (belongs(i) && (wanted === "" || data.names[i].toLowerCase().includes(wanted))) found.push(i);
    }
    const sign = state.descending ? -1 : 1;
    if (state.column === "name") {
      found.sort((a, b) => sign * collator.compare(data.names[a], data.names[b]) || a - b);
    } else if (state.column !== "rank" || state.descending) {
      const value = VALUE[state.column];
      found.sort((a, b) => sign * (value(a) - value(b)) || a - b);
    }
    state.found = found;
    state.page = 0;
  };

  const small = (className, ...content) => {
    const element = document.createElement("span");
    element.className = className;
    element.append(...content);
    return element;
  };

  const SVG = byId("blank").namespaceURI;
  const sparkElement = ([heights, low, high]) => {
    const svg = document.createElementNS(SVG, "svg");
    place(svg, { viewBox: "0 0 " + 4 * heights.length + " 18", preserveAspectRatio: "none", role: "img",
      "aria-label": "values from " + low + " to " + high });
    const title = document.createElementNS(SVG, "title");
    title.textContent = low + " to " + high;
    const path = document.createElementNS(SVG, "path");
    const bar = (height, at) =>
      Number(height) ? "M" + 4 * at + " 18v-" + (2 * Number(height)) + "h3v" + (2 * Number(height)) + "z" : "";
    path.setAttribute("d", [...heights].map(bar).join(""));
    svg.append(title, path);
    return svg;
  };
  const sparkCell = (bars) =>
    cell("spark", ...(bars && bars[0] ? [sparkElement(bars), small("range", bars[1] + " … " + bars[2])] : []));

  const rowElement = (i) => {
    const row = document.createElement("tr");
    const rank = cell("number", counted.format(i + 1));
    const name = cell("name", nameElement(data.names[i]));
    if (i < state.k) {
      row.className = "kept";
      rank.append(small("unseen", " kept"));
      const why = whyKept(i);
      if (why.length) name.append(small("why", ...why));
    } else {
      name.append(small("why", ...WHY[reasonOf(i)](i)));
    }
    const spark = data.sparks.length === 0 ? []
      : [sparkCell(data.sparks[i])];
    row.append(
      rank,
      name,
      ...spark,
      cell("number", scoreText(data.scores[i])),
    );
    return row;
  };
  const showRows = () => {
    const first = state.page * ROWS_A_PAGE;
    const shown = state.found.slice(first, first + ROWS_A_PAGE).map(rowElement);
    if (shown.length === 0) {
      const row = document.createElement("tr");
      row.className = "empty";
      const only = cell("", "No name matches.");
      only.colSpan = document.querySelectorAll("#features th").length;
      row.append(only);
      shown.push(row);
    }
    byId("rows").replaceChildren(...shown);
    const count = state.found.length;
    const last = Math.min(first + ROWS_A_PAGE, count);
    byId("page-status").textContent =
      count === 0 ? "0 of " + counted.format(total)
        : counted.format(first + 1) + "–" + counted.format(last) + " of " + counted.format(count);
    byId("previous").disabled = state.page === 0;
    byId("next").disabled = last >= count;
  };

  const refresh = () => { findRows(); showRows(); };

  const sortBy = (column) => {
    const again = state.column === column;
    state.descending = again ? !state.descending : LARGEST_FIRST.has(column);
    state.column = column;
    document.querySelectorAll("th[aria-sort]").forEach((header) => {
      const own = header.querySelector("button").dataset.sort === column;
      header.setAttribute("aria-sort", own ? (state.descending ? "descending" : "ascending") : "none");
    });
    refresh();
  };

  // ---- how many to keep ----
  const slider = byId("k-slider");
  const number = byId("k-number");
  const linear = total <= LONGEST_LINEAR_SLIDER;
  const positionOf = (k) =>
    total === 1 ? 1 : linear ? (k - 1) / (total - 1) : Math.log(k) / Math.log(total);
  const countAt = (position) =>
    Math.round(linear ? 1 + position * (total - 1) : Math.pow(total, position));

  const setK = (wanted) => {
    const k = Math.min(Math.max(Math.round(wanted), 1), total);
    state.k = k;
    slider.value = String(positionOf(k));
    slider.setAttribute("aria-valuetext", counted.format(k) + " features");
    if (number !== document.activeElement || Number(number.value) !== k) number.value = String(k);
    byId("kept-summary").querySelector("strong").textContent = counted.format(k);
    byId("as-asked").disabled = k === data.k;
    byId("copy-status").textContent = "";
    byId("copy-text").hidden = true;
    if (byId("which").value !== "all") findRows();
    showRows();
  };

  const drawScale = () => {
    const marks = new Set([1, total]);
    const step = Math.pow(10, Math.floor(Math.log10(Math.max(total / 2, 1))));
    for (let at = linear ? step : 10; at < total; at = linear ? at + step : at * 10) marks.add(at);
    let last = -1;
    const apart = 44 / Math.max(byId("k-scale").clientWidth, 1); // labels do not run together
    const shown = [...marks].sort((a, b) => a - b).filter((at, i, all) => {
      const here = positionOf(at);
      const keep = at === total || (here - last >= apart && (at === 1 || 1 - here >= apart));
      if (keep) last = here;
      return keep;
    });
    byId("k-scale").replaceChildren(...shown.map((at) => {
      const mark = small("", counted.format(at));
      mark.style.left = "calc(8px + (100% - 16px) * " + positionOf(at).toFixed(4) + ")";
      return mark;
    }));
  };

  // Arrow keys move by one feature, whatever the scale of the slider.
  const STEPS = {
    ArrowRight: () => 1, ArrowUp: () => 1, ArrowLeft: () => -1, ArrowDown: () => -1,
    PageUp: () => Math.max(1, Math.round(state.k / 10)),
    PageDown: () => -Math.max(1, Math.round(state.k / 10)),
    Home: () => -total, End: () => total,
  };

  // ---- the list to take away ----
  const keptText = () => data.names.slice(0, state.k).join("\n");
  const copyText = (text, done, byHand) => {
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  };
  const copyList = () => {
    const text = keptText();
    const done = () => {
      byId("copy-status").textContent = "Copied " + counted.format(state.k) + " names.";
    };
    copyText(text, done, () => {
      const area = byId("copy-text");
      area.hidden = false;
      area.value = text;
      area.focus();
      area.select();
      if (document.execCommand("copy")) done();
      else byId("copy-status").textContent = "The list is selected below: press Ctrl+C.";
    });
  };
  const copyCode = (button) => {
    const code = byId(button.dataset.code);
    const status = button.nextElementSibling;
    const done = () => { status.textContent = "Copied."; };
    copyText(code.textContent, done, () => {
      getSelection().selectAllChildren(code);
      if (document.execCommand("copy")) done();
      else status.textContent = "Selected: press Ctrl+C.";
    });
  };
  const fillPrintedList = () => {
    const separated = data.names.slice(0, state.k).flatMap((name) => [nameElement(name), ", "]);
    byId("printed-list").replaceChildren(...separated.slice(0, -1));
  };

  // ---- figures ----
  const svgElement = (svg, kind, className) => {
    const element = document.createElementNS(svg.namespaceURI, kind);
    element.setAttribute("class", className);
    svg.append(element);
    return element;
  };
  const place = (element, attributes) => {
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, String(value)));
  };
  const pointIn = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };

  const linkMap = () => {
    const svg = document.querySelector("#map svg");
    const outline = svgElement(svg, "rect", "cell");
    const readout = byId("map-readout");
    const { frame: [left, top, right, bottom], shown, hundredths } = data.map;
    const width = (right - left) / shown.length;
    const height = (bottom - top) / shown.length;
    svg.addEventListener("pointermove", (event) => {
      const [x, y] = pointIn(svg, event);
      const column = Math.floor((x - left) / width);
      const row = Math.floor((y - top) / height);
      const inside = Math.min(row, column) >= 0 && Math.max(row, column) < shown.length;
      outline.style.display = inside ? "" : "none";
      if (!inside) { readout.textContent = "\u00a0"; return; }
      place(outline, { x: left + column * width, y: top + row * height, width, height });
      const r = rText(hundredths[row][column], shown[row], shown[column]);
      readout.replaceChildren(
        nameElement(data.names[shown[row]]), " and ", nameElement(data.names[shown[column]]), ": r = " + r);
    });
  };

  // ---- start ----
  slider.addEventListener("input", () => setK(countAt(Number(slider.value))));
  slider.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    setK(state.k + STEPS[event.key]());
  });
  number.addEventListener("input", () => { if (Number(number.value) >= 1) setK(Number(number.value)); });
  number.addEventListener("change", () => setK(Number(number.value) || state.k));
  byId("as-asked").addEventListener("click", () => setK(data.k));
  byId("copy").addEventListener("click", copyList);
  byId("search").addEventListener("input", refresh);
  byId("which").replaceChildren(...GROUPS.map(([letters, words]) => new Option(words, letters)));
  byId("which").addEventListener("change", refresh);
  document.querySelectorAll(".copy-code").forEach((button) => {
    button.addEventListener("click", () => copyCode(button));
  });
  byId("previous").addEventListener("click", () => { state.page -= 1; showRows(); });
  byId("next").addEventListener("click", () => { state.page += 1; showRows(); });
  document.querySelectorAll("[data-sort]").forEach((button) => {
    button.addEventListener("click", () => sortBy(button.dataset.sort));
  });
  window.addEventListener("beforeprint", fillPrintedList);
  window.matchMedia("print").addEventListener("change", fillPrintedList);
  if (data.map) linkMap();
  drawScale();
  window.addEventListener("resize", drawScale);
  refresh();
  setK(data.k);
})();
