// Tells README's story to an exported memory, in Node: node replay.js FOLDER < lines
// Prints one JSON object for each line: what left the memory, or the answer.
// The state is the packed one: a string. As named tensors it has 64-bit integers, which JavaScript
// cannot hold.
const fs = require("fs");
const tf = require("@tensorflow/tfjs-node");

async function main(folder) {
  const load = (signature) => tf.node.loadSavedModel(folder, ["serve"], signature);
  const observe = await load("observe_packed");
  const answer = await load("answer_packed");
  const text = (value) => tf.tensor1d([value], "string");
  let state = "";
  for (const line of fs.readFileSync(0, "utf-8").split("\n").filter(Boolean)) {
    if (line.endsWith("?")) {
      const out = answer.predict({ state: text(state), question: text(line) });
      console.log(JSON.stringify({ answer: out.answer.dataSync()[0], texts: out.texts.dataSync() }));
    } else {
      const out = observe.predict({ state: text(state), item: text(line) });
      state = out.state.dataSync()[0];
      console.log(JSON.stringify({ evicted: Number(out.evicted.dataSync()[0]) }));
    }
  }
}

main(process.argv[2]);
