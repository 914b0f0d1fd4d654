// Looks whether this browser can run the program, fetches it, starts it, and shows what went wrong in words.
// The program's side is src/web.rs.

const words = {
  insecure:
    "Browsers offer WebGPU to secure pages only. Open this page by an address that begins with https://, or, on this computer, with http://127.0.0.1.",
  noWebGpu:
    "This browser does not offer WebGPU, on which all computation here runs. Use a current Chrome or Edge, Safari 26 or later, or Firefox 141 or later on Windows; in Chrome on Linux, first enable chrome://flags/#enable-unsafe-webgpu.",
  noAdapter:
    "This browser has WebGPU but gives it no graphics adapter. Turn on graphics acceleration in the browser's settings and restart it; if that is not enough, update the graphics driver or, in Chrome, enable chrome://flags/#enable-unsafe-webgpu.",
  adapter: "this browser's adapter",
  checking: "Looking for a graphics adapter\u2026",
  downloading: (received, total) =>
    `Fetching the program: ${megabytes(received)}${total ? ` of ${megabytes(total)}` : ""} MB`,
  starting: "Starting\u2026",
  download: (reason) => `The program could not be fetched (${reason}). Check the connection and reload the page.`,
  start: (reason) =>
    `The program could not start (${reason}). Reload the page; if that does not help, restart the browser.`,
  stopped: (reason) =>
    `The program stopped because of an error of its own (${reason}). Reload the page to go on; the address keeps your settings.`,
  reload: "Reload",
  dismiss: "Dismiss",
};

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
const element = (id) => document.getElementById(id);
const say = (text) => (element("status").textContent = text);

let ended = false;
let adapter = null;

/** The first line of an error, without what wasm-bindgen puts around it; all of it goes to the console. */
function brief(error) {
  console.error(error);
  return String(error.message ?? error).split("\n")[0].replace("JsValue(", "");
}

/** Covers the page with the first reason why there is no program, or no longer one. */
function end(text) {
  if (ended) return;
  ended = true;
  say(text);
  element("status").setAttribute("role", "alert");
  element("cover").hidden = false;
  element("banner").hidden = true;
  element("restart").hidden = false;
  element("restart").focus();
}

// What the program calls.
window.attentionLab = {
  /** Shows a sentence over the running program. */
  problem(text) {
    if (ended) return;
    element("problem").textContent = text;
    element("banner").hidden = false;
  },
  /** What is known of the graphics adapter. */
  adapterName: () =>
    adapter?.info?.description ||
    [adapter?.info?.vendor, adapter?.info?.architecture].filter(Boolean).join(" ") ||
    words.adapter,
  /** Ends the program with the message of its panic. */
  stop: (reason) => end(words.stopped(reason)),
};

/** The sentence for a browser that cannot run the program, or nothing. */
async function obstacle() {
  if (!window.isSecureContext) return words.insecure;
  if (!navigator.gpu) return words.noWebGpu;
  try {
    adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    return adapter ? null : words.noAdapter;
  } catch {
    return words.noAdapter;
  }
}

/** The response for a file beside this one, which reports how much of it has arrived. */
async function fetchCounted(file, report) {
  const response = await fetch(new URL(file, import.meta.url));
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  // The length of a compressed response says nothing about what is counted here.
  const total = response.headers.has("Content-Encoding") ? 0 : Number(response.headers.get("Content-Length"));
  let received = 0;
  const count = new TransformStream({
    transform(chunk, controller) {
      received += chunk.byteLength;
      report(received, total);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(count), { headers: { "Content-Type": "application/wasm" } });
}

async function boot() {
  say(words.checking);
  const sentence = await obstacle();
  if (sentence) return end(sentence);

  let program;
  try {
    program = await import("./attention_lab.js");
    const wasm = await fetchCounted("attention_lab_bg.wasm", (received, total) =>
      say(words.downloading(received, total)),
    );
    await program.default({ module_or_path: wasm });
  } catch (error) {
    return end(words.download(brief(error)));
  }

  say(words.starting);
  try {
    await program.start(element("canvas"));
  } catch (error) {
    return end(words.start(brief(error)));
  }
  // The first picture is on the canvas after the next frame.
  requestAnimationFrame(() => requestAnimationFrame(() => (element("cover").hidden = !ended)));
}

// A panic has told its message by now; a stack that ran over, or memory that ran out, tells only here.
for (const [kind, reason] of [["error", "error"], ["unhandledrejection", "reason"]]) {
  window.addEventListener(kind, (event) => {
    if (event[reason] instanceof WebAssembly.RuntimeError) window.attentionLab.stop(event[reason].message);
  });
}

for (const id of ["restart", "reload"]) {
  element(id).textContent = words.reload;
  element(id).addEventListener("click", () => location.reload());
}
element("dismiss").textContent = words.dismiss;
element("dismiss").addEventListener("click", () => (element("banner").hidden = true));

boot();
