import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import { type ProbeOptions, withMissed } from './health-prober.ts'

/** The thread of `HealthProber`: sends requests at fixed times; at the first message it stops and posts the results. */
const { port, path, everyMs, isFresh } = workerData as ProbeOptions
const agent = isFresh ? undefined : new Agent({ keepAlive: true, maxSockets: 1 })
const times: number[] = []
let failures = 0
let isBusy = false
let isReady = false

async function probe(): Promise<void> {
  if (isBusy) return // `withMissed` counts this request.
  isBusy = true
  const start = performance.now()
  try {
    const req = get({ host: '127.0.0.1', port, path, agent: agent ?? false })
    const [res] = await once(req, 'response')
    await once(res.resume(), 'end')
    if (res.statusCode !== 200) failures += 1
  } catch {
    failures += 1
  }
  times.push(...withMissed(performance.now() - start, everyMs))
  isBusy = false
  if (isReady) return
  isReady = true
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage('ready')
}

const timer = setInterval(() => void probe(), everyMs)
parentPort?.once('message', () => {
  clearInterval(timer)
  agent?.destroy()
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage({ times, failures })
})
