"use strict";
(() => {
  const ROWS_A_PAGE = 25;
  const LONGEST_SHOWN = 60;
  // Past this many features the slider is logarithmic: the interesting k are the small ones.
  const LONGEST_LINEAR_SLIDER = 200;
  const PIXEL_KEPT = [232, 133, 58];

  const data = JSON.parse(document.getElementById("data").textContent);
  // Names come without what they all begin with, numbers as multiples of a power of ten.
  data.names = data.names.map((rest) => data.prefix + rest);
  const unpacked = ({ exponent, values }) =>
    values.map((value) => (exponent < 0 ? value / 10 ** -exponent : value * 10 ** exponent));
  data.scores = unpacked(data.scores);
  data.variances = unpacked(data.variances);
  const total = data.names.length;
  const byId = (id) => document.getElementById(id);
  const counted = new Intl.NumberFormat("en-US");
  const collator = new Intl.Collator("en", { numeric: true });
  const state = { k: data.k, page: 0, column: "rank", descending: false, found: [] };

  // Variance held by the first k, for every k.
  const held = new Float64Array(total + 1);
  data.variances.forEach((variance, i) => { held[i + 1] = held[i] + variance; });

  const shareOf = (k) => (data.total > 0 ? Math.min(held[k] / data.total, 1) : 0);
  const percent = (share) => (100 * share).toFixed(1) + "\u00a0%";

  // ---- names: always text, never markup ----
  // As `display_name` in report_parts.py: control characters, and those that turn the text around them.
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
  // The same number of decimals down a column, chosen by its largest entry; tiny ones as 1.2e-7.
  const columnFormat = (values) => {
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const decimals = Math.min(Math.max(3 - Math.floor(Math.log10(largest || 1)), 0), 8);
    const smallest = Math.pow(10, -decimals);
    return (value) => {
      const size = Math.abs(value);
      const text = value === 0 ? "0"
        : size < smallest || size >= 1e7 ? value.toExponential(1) : value.toFixed(decimals);
      return text.replace(/-/g, "−");
    };
  };
  const scoreText = columnFormat(data.scores);
  const varianceText = columnFormat(data.variances);
  // The interval of a frequency depends on how many halves it counts alone.
  const intervalCells = (i) => {
    if (!data.intervals) return [];
    const { halves, ends } = data.intervals;
    const [low, high] = ends[Math.round(halves * data.scores[i])];
    return [cell("number interval", low.toFixed(2) + "–" + high.toFixed(2))];
  };

  // ---- the table ----
  const VALUE = {
    rank: (i) => i,
    score: (i) => data.scores[i],
    variance: (i) => data.variances[i],
    neighbour: (i) => (data.r[i] === null || data.r[i] === undefined ? -1 : Math.abs(data.r[i])),
  };
  const LARGEST_FIRST = new Set(["score", "variance", "neighbour"]);

  const findRows = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const keptOnly = byId("kept-only").checked;
    const last = keptOnly ? state.k : total;
    const found = [];
    for (let i = 0; i < last; i++) {
      if (wanted === "" || data.names[i].toLowerCase().includes(wanted)) found.push(i);
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

  // What is proved is about sets of as many features as were asked for.
  const PROOFS = { i: "in every best set", o: "in no best set" };

  const rowElement = (i) => {
    const row = document.createElement("tr");
    const rank = cell("number", counted.format(i + 1));
    if (i < state.k) {
      row.className = "kept";
      const word = document.createElement("span");
      word.className = "unseen";
      word.textContent = " kept";
      rank.append(word);
    }
    const name = cell("name", nameElement(data.names[i]));
    const proof = state.k === data.k && data.proved && PROOFS[data.proved[i]];
    if (proof) {
      const mark = document.createElement("span");
      mark.className = "proof";
      mark.textContent = proof;
      name.append(" ", mark);
    }
    const near = data.neighbours[i];
    const has = near !== undefined && near >= 0;
    row.append(
      rank,
      name,
      cell("number", scoreText(data.scores[i])),
      ...intervalCells(i),
      cell("number", varianceText(data.variances[i])),
      cell("neighbour", has ? nameElement(data.names[near]) : "–"),
      cell("number", has ? data.r[i].toFixed(2).replace("-", "−") : "–"),
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
      only.colSpan = data.intervals ? 7 : 6;
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
    const [kept, share] = byId("kept-summary").querySelectorAll("strong");
    kept.textContent = counted.format(k);
    share.textContent = percent(shareOf(k));
    byId("as-asked").disabled = k === data.k;
    byId("copy-status").textContent = "";
    byId("copy-text").hidden = true;
    moveLine(k);
    paintImage(k);
    if (byId("kept-only").checked) findRows();
    showRows();
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
  const copyList = () => {
    const text = keptText();
    const done = () => {
      byId("copy-status").textContent = "Copied " + counted.format(state.k) + " names.";
    };
    const byHand = () => {
      const area = byId("copy-text");
      area.hidden = false;
      area.value = text;
      area.focus();
      area.select();
      if (document.execCommand("copy")) done();
      else byId("copy-status").textContent = "The list is selected below: press Ctrl+C.";
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
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

  const curve = document.querySelector("#curve svg");
  const line = svgElement(curve, "line", "k-line");
  const moveLine = (k) => {
    const [left, top, right, bottom] = data.curve.frame;
    const [low, high] = data.curve.span;
    const x = left + ((k - low) / (high - low)) * (right - left);
    place(line, { x1: x, x2: x, y1: top, y2: bottom });
    line.style.display = k > high ? "none" : "";
  };

  const canvas = byId("image");
  const paintImage = (k) => {
    if (!canvas) return;
    const { height, width, grey, place: pixel, columns } = data.image;
    const context = canvas.getContext("2d");
    const picture = context.createImageData(width, height);
    grey.forEach((value, column) => {
      picture.data.set([value, value, value, 255], 4 * pixel[column]);
    });
    columns.slice(0, k).forEach((column) => {
      const mixed = PIXEL_KEPT.map((part) => 0.8 * part + 0.2 * grey[column]);
      picture.data.set(mixed, 4 * pixel[column]);
    });
    context.putImageData(picture, 0, 0);
    canvas.setAttribute("aria-label",
      counted.format(k) + " of " + counted.format(total) + " pixels kept, over the mean image");
  };

  const linkSamples = () => {
    const { index, names, words, labels, before, after } = data.samples;
    const described = (i) => {
      const label = labels ? [" · ", nameElement(words[labels[i]])] : [];
      return [names ? nameElement(names[i]) : "sample " + (index[i] + 1), ...label];
    };
    const views = [["before", before], ["after", after]].map(([id, dots]) => {
      const svg = document.querySelector("#" + id + " svg");
      return { svg, dots, ring: svgElement(svg, "circle", "ring") };
    });
    const readout = byId("sample-readout");
    const nearest = (dots, x, y) => {
      let best = -1;
      let distance = 12 * 12;
      for (let i = 0; i < index.length; i++) {
        const away = (dots[2 * i] - x) ** 2 + (dots[2 * i + 1] - y) ** 2;
        if (away < distance) { best = i; distance = away; }
      }
      return best;
    };
    const show = (i) => {
      readout.replaceChildren(...(i < 0 ? ["\u00a0"] : described(i)));
      views.forEach(({ dots, ring }) => {
        place(ring, i < 0 ? { r: 0 } : { cx: dots[2 * i], cy: dots[2 * i + 1], r: 6 });
      });
    };
    views.forEach(({ svg, dots }) => {
      svg.addEventListener("pointermove", (event) => show(nearest(dots, ...pointIn(svg, event))));
      svg.addEventListener("pointerleave", () => show(-1));
    });
  };

  const linkLegend = () => {
    const buttons = [...document.querySelectorAll(".legend button")];
    buttons.forEach((button) => button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(on && other === button)));
      document.querySelectorAll(".pair g[data-class]").forEach((group) => {
        group.classList.toggle("faded", on && group.dataset.class !== button.dataset.class);
      });
    }));
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
      const r = (hundredths[row][column] / 100).toFixed(2).replace("-", "−");
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
  const toKnee = byId("to-knee");
  if (toKnee) toKnee.addEventListener("click", () => setK(Number(toKnee.dataset.knee)));
  byId("copy").addEventListener("click", copyList);
  byId("search").addEventListener("input", refresh);
  byId("kept-only").addEventListener("change", refresh);
  byId("previous").addEventListener("click", () => { state.page -= 1; showRows(); });
  byId("next").addEventListener("click", () => { state.page += 1; showRows(); });
  document.querySelectorAll("[data-sort]").forEach((button) => {
    button.addEventListener("click", () => sortBy(button.dataset.sort));
  });
  window.addEventListener("beforeprint", fillPrintedList);
  window.matchMedia("print").addEventListener("change", fillPrintedList);
  if (data.samples) linkSamples();
  linkLegend();
  if (data.map) linkMap();
  refresh();
  setK(data.k);
})();
