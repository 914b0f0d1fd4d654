// Linear algebra that would stop the page for seconds. The program's side is src/algebra/apart.rs.

import start, { orthonormal_of, svd_of } from "./attention_lab.js";

const functions = { orthonormal_of, svd_of };
const ready = start({ module_or_path: new URL("attention_lab_bg.wasm", import.meta.url) });

/** Answers {call, matrix, rows, cols} with the floats of the result, or with the sentence of why there is none. */
self.onmessage = async ({ data: { call, matrix, rows, cols } }) => {
  try {
    await ready;
    const { buffer } = functions[call](new Float32Array(matrix), rows, cols);
    self.postMessage(buffer, [buffer]);
  } catch (error) {
    if (typeof error === "string") {
      self.postMessage(error);
    } else {
      // The program does not start, or broke off: the page is told by its onerror.
      self.reportError(error);
    }
  }
};
