import { parentPort, workerData } from 'node:worker_threads'
import { Client } from '../client.ts'
import { GATEWAY } from '../dialect.ts'

/** A thread that starts many runs at once when its parent says how many, so that the load of that does not hold up who reads the running ones. */
export type Starts = { port: number; tokens: number }

const { port, tokens } = workerData as Starts
const client = new Client({ port, dialect: GATEWAY }, new AbortController().signal)

parentPort?.on('message', (count: number) => void start(count))

async function start(count: number): Promise<void> {
  const streamed = await Promise.all(Array.from({ length: count }, () => client.stream(tokens)))
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(streamed.map(({ firstMs }) => firstMs))
}
