// Frames of texts on the standard input, and lines of answers on the standard output.

const LONGEST_MESSAGE = 300;

export function line(word, message) {
  return `${word} ${message.replace(/\s+/g, " ").slice(0, LONGEST_MESSAGE)}\n`;
}

/** Reads texts, each after its length in four bytes, big-endian, and writes an answer to each. */
export function answering(answer) {
  let received = [];
  let size = 0;
  let wanted = 4;
  process.stdin.on("data", (chunk) => {
    received.push(chunk);
    size += chunk.length;
    if (size < wanted) return;
    const buffer = Buffer.concat(received);
    let at = 0;
    let answers = "";
    wanted = 4;
    while (buffer.length - at >= 4) {
      wanted = 4 + buffer.readUInt32BE(at);
      if (buffer.length - at < wanted) break;
      answers += answer(buffer.toString("utf8", at + 4, at + wanted));
      at += wanted;
      wanted = 4;
    }
    received = [buffer.subarray(at)];
    size = buffer.length - at;
    if (answers) process.stdout.write(answers);
  });
}
