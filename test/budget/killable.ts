import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { startCluster } from '../support/cluster.ts'
import { startModelServer } from '../support/model-server/model-server.ts'
import type { Product } from '../support/product.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

/** A product as the doors use it. `kill` gives kill -9 to all processes that run agents, where it has processes of its own, and starts as many anew. */
export type Engine = Pick<Product, 'call' | 'stream' | 'model' | 'log' | 'close'> & { kill?(): Promise<void> }

type Processes = { urls(): readonly string[]; kill(): Promise<void>; output(): string; close(): Promise<void> }

/** Starts the product in processes of its own, whose runs outlive them. */
export async function startKillable(form: Form, env: Record<string, string>): Promise<Engine> {
  const [model, folder] = [await startModelServer(), await makeTempFolder()]
  const started = await (form === 'cluster' ? startWorkers : startAlone)({
    ...{ DATA_DIR: folder.path, RATE_LIMIT_RPM: '0', DRAIN_SECS: '0', DURABILITY: 'runs' },
    ...{ MODEL: 'test-model', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: model.url },
    ...env,
  })
  let calls = 0
  const at = (path: string) => `${started.urls()[calls++ % started.urls().length]}${path}`
  return {
    model,
    kill: () => started.kill(),
    get log() {
      return started.output().split('\n')
    },
    call: (method, path, body, headers) => callApi(at(path), initOf(method, body, headers)),
    stream: (path, body, headers) => openStream(at(path), initOf(body === undefined ? 'GET' : 'POST', body, headers)),
    async close() {
      await started.close()
      await model.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

async function startWorkers(env: Record<string, string>): Promise<Processes> {
  const cluster = await startCluster(env, { executor: 0 })
  let workers = cluster.workers
  return {
    urls: () => cluster.urls,
    output: () => [...cluster.gateways, ...workers].map(({ output }) => output).join('\n'),
    async kill() {
      await Promise.all(workers.map((worker) => worker.kill('SIGKILL')))
      workers = await Promise.all(workers.map(() => cluster.startWorker()))
    },
    close: () => cluster.close(),
  }
}

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname

async function startAlone(env: Record<string, string>): Promise<Processes> {
  const all = { PORT: '0', OPS_PORT: '0', PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE, ...env }
  const start = async (): Promise<[Child, string]> => {
    const child = await spawnChild({ name: 'standalone', command: process.execPath, args: [MAIN], env: all })
    const [line] = await child.line(/^\{.*"msg":"listening".*\}$/m, 90_000)
    return [child, (JSON.parse(line) as { url: string }).url]
  }
  let [child, url] = await start()
  return {
    urls: () => [url],
    output: () => child.output,
    async kill() {
      await child.kill('SIGKILL')
      ;[child, url] = await start()
    },
    close: async () => void (await child.stop(10_000)),
  }
}
