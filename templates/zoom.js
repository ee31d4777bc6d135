// Charts that can be enlarged and moved in their place, by buttons, keys, a double click or the wheel. Without it a link enlarges them.
(() => {
  "use strict";
  const LARGEST = 12;
  const STEP_PIXELS = 60;
  const WAYS = [
    ["+", "Enlarge the chart", "larger"],
    ["−", "Make the chart smaller", "smaller"],
    ["Whole", "Show the whole chart", "whole"],
  ];
  const KEYS = { "+": "larger", "=": "larger", "-": "smaller", 0: "whole", Escape: "whole" };
  const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  const makeZoomable = (chart) => {
    const drawing = chart.querySelector("svg");
    const controls = document.createElement("span");
    let made;

    // Made when it is first wanted: a page has a hundred charts, and most are only looked at.
    const zoom = () => {
      made ??= Panzoom(drawing, { minScale: 1, maxScale: LARGEST, step: 0.5, panOnlyWhenZoomed: true, contain: "outside", touchAction: "auto" });
      return made;
    };

    const settle = () => {
      const isLarger = zoom().getScale() > 1.001;
      if (!isLarger) zoom().reset({ animate: false });
      chart.classList.toggle("zoomed", isLarger);
      drawing.style.cursor = isLarger ? "grab" : "";
      drawing.style.touchAction = isLarger ? "none" : "";
      controls.lastChild.disabled = controls.children[1].disabled = !isLarger;
    };

    const acts = {
      larger: () => zoom().zoomIn({ animate: false }),
      smaller: () => zoom().zoomOut({ animate: false }),
      whole: () => zoom().reset({ animate: false }),
    };
    const act = (name) => {
      acts[name]();
      settle();
    };

    for (const [sign, words, name] of WAYS) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      button.setAttribute("aria-label", `${words}: ${chart.getAttribute("aria-label")}`);
      button.disabled = name !== "larger";
      button.addEventListener("click", () => act(name));
      controls.append(button);
    }
    chart.tabIndex = 0;
    controls.className = "zoom-controls";
    chart.closest("figure").querySelector("figcaption").prepend(controls);

    chart.addEventListener("dblclick", (event) => {
      zoom().zoomToPoint(zoom().getScale() * 2, event);
      settle();
    });
    chart.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      zoom().zoomWithWheel(event, { animate: false });
      settle();
    }, { passive: false });
    chart.addEventListener("keydown", (event) => {
      const isZoomed = chart.classList.contains("zoomed");
      if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own
      if (KEYS[event.key]) act(KEYS[event.key]);
      else if (ARROWS[event.key] && isZoomed) {
        const [right, down] = ARROWS[event.key].map((way) => (way * STEP_PIXELS) / zoom().getScale());
        zoom().pan(right, down, { relative: true });
      } else return;
      event.preventDefault();
    });
  };

  for (const chart of document.querySelectorAll("figure > .chart")) makeZoomable(chart);
})();
