import { randomBytes } from 'node:crypto'
import { ask } from '../../ask.ts'
import { now } from '../../history.ts'

/** Settings of processes that run flows at a provider on this machine. */
export const flowSettings = (): Record<string, string> => ({
  MASTER_KEY: randomBytes(32).toString('base64'),
  ALLOW_PRIVATE_URLS: 'true',
})

export const FLOW_PATH = '/flows/echo'
export const INSTANCE = 'model'
export const PROVIDER_KEY = 'sk-chaos-5d1f0c7e9a3b4f62'

const OBJECT = { type: 'object', additionalProperties: false }
const ECHO = {
  input_schema: {
    ...OBJECT,
    properties: { token: { type: 'string' }, ms: { type: 'integer' } },
    required: ['token', 'ms'],
  },
  output_schema: { ...OBJECT, properties: { token: { type: 'string' } }, required: ['token'] },
  model: 'm',
}
const RUNS_WITHIN_MS = 10_000

type Headers = Readonly<Record<string, string>>

/** Stores the provider and publishes the flow. Resolves when each gateway has run it. Throws when a request is refused. */
export async function prepareFlow(urls: readonly string[], modelUrl: string, headers: Headers = {}): Promise<void> {
  const [url = ''] = urls
  const send = async (method: string, path: string, body?: object) => {
    const answered = await ask(url, { method, path, headers, ...(body && { body }) })
    if (answered.status !== 200)
      throw new Error(`${method} ${path}: ${answered.status} ${JSON.stringify(answered.body)}`)
  }
  await send('PUT', `/config/instances/${INSTANCE}`, { type: 'openai-compatible', url: modelUrl, key: PROVIDER_KEY })
  await send('PUT', FLOW_PATH, ECHO)
  await send('POST', `${FLOW_PATH}/publish`)
  await Promise.all(urls.map((each) => untilRuns(each, headers)))
}

/** A gateway that has just started does not know the executors and the configuration yet. */
async function untilRuns(url: string, headers: Headers): Promise<void> {
  const body = { input: { token: 'first', ms: 0 }, provider_instance: INSTANCE }
  for (const deadline = now() + RUNS_WITHIN_MS; ; ) {
    const answered = await ask(url, { path: `${FLOW_PATH}/run`, body, headers })
    if (answered.status === 200) return
    if (now() > deadline) throw new Error(`${url} runs no flow: ${answered.status} ${JSON.stringify(answered.body)}`)
  }
}
