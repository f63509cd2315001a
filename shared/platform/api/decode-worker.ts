import { parentPort, workerData } from 'node:worker_threads'
import { createDecode } from './decode.ts'
import type { DecodeTask } from './decode-thread.ts'
import type { Schemas } from './document.ts'

/** Runs in the thread that `decode-thread.ts` starts. Each task is answered with one message, in order. */
const decode = createDecode(workerData as Schemas)

parentPort?.on('message', ({ name, bytes, lines }: DecodeTask) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(decode(name, bytes, lines))
})
