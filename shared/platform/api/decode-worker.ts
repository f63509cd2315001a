import { getHeapStatistics } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import { decoderOf } from './bodies.ts'
import type { DecodeAnswer, DecodeTask } from './decode-thread.ts'

/** Runs in the thread that `decode-thread.ts` starts. Each task is answered with one message; only then comes the next task. */
parentPort?.on('message', (task: DecodeTask) => void answer(task))

async function answer({ name, bytes, lines }: DecodeTask): Promise<void> {
  const decode = await decoderOf(name)
  const decoded = decode(bytes, lines)
  const { total_heap_size: heapBytes, external_memory: externalBytes } = getHeapStatistics()
  const message: DecodeAnswer = { decoded, heapBytes: heapBytes + externalBytes }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(message)
}
