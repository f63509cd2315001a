import { setTimeout as sleep } from 'node:timers/promises'
import { callApi, initOf } from '../support/api-client.ts'
import { EventStream, type Frame } from '../support/event-stream.ts'

const PAUSE_MS = 800
/** Long enough for its executor to be replaced between the step that writes and the one that reads. */
const PLAN_WAIT_MS = 3_000
const LOOK_EVERY_MS = 300

const write = (text: string) => `/tool Write {"path":"notes/a.txt","content":"${text}"}`
const READ = '/tool Read {"path":"notes/a.txt"}'
/** Connections are not reused, as in `Load`. */
const HEADERS = { connection: 'close' }

type EndedPlan = { status: string; step_outputs: Record<string, unknown> }

/** Clients that write a file in each turn of a session, or step of a plan, and read in a later one what they wrote. */
export class FileLoad {
  readonly counts = { turns: 0, plans: 0 }
  readonly failures: string[] = []
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #stop = new AbortController()
  #clients: Promise<void>[] = []

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.#url = url
    this.#headers = { ...HEADERS, ...headers }
  }

  start({ sessions, plans }: { sessions: number; plans: number }): void {
    const all = [
      ...Array.from({ length: sessions }, () => this.#talk()),
      ...Array.from({ length: plans }, () => this.#submitPlans()),
    ]
    this.#clients = all.map((client) => client.catch((cause: unknown) => void this.failures.push(String(cause))))
  }

  /** Lets the clients finish what they began. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#clients)
  }

  async #talk(): Promise<void> {
    const { session_id: id } = (await this.#call('POST', '/sessions', {})) as { session_id: string }
    const say = async (prompt: string) => {
      const init = initOf('POST', { prompt }, this.#headers)
      const frames = await (await EventStream.open(`${this.#url}/sessions/${id}/messages`, init)).all()
      assertDone(frames)
      return frames
    }
    await say(write('turn 0'))
    for (let turn = 1; !this.#stop.signal.aborted; turn++) {
      const result = (await say(READ)).find(({ event }) => event === 'tool_result')?.data['output']
      assertIncludes(String(result), `turn ${turn - 1}`)
      await say(write(`turn ${turn}`))
      this.counts.turns++
      await sleep(PAUSE_MS)
    }
  }

  async #submitPlans(): Promise<void> {
    for (let n = 1; !this.#stop.signal.aborted; n++) {
      const steps = [
        { id: 'write', prompt: write(`plan ${n}`) },
        { id: 'wait', prompt: `/sleep ${PLAN_WAIT_MS}\n/say waited`, depends_on: ['write'] },
        { id: 'read', prompt: READ, depends_on: ['wait'] },
      ]
      const { id } = (await this.#call('POST', '/plans/submit', { steps })) as { id: string }
      const { status, step_outputs: outputs } = await this.#endOf(id)
      if (status !== 'done') throw new Error(`plan ${n} ended ${status}`)
      assertIncludes(String(outputs['read']), `plan ${n}`)
      this.counts.plans++
    }
  }

  async #endOf(id: string): Promise<EndedPlan> {
    for (;;) {
      const plan = (await this.#call('GET', `/plans/${id}`)) as EndedPlan
      if (plan.status !== 'queued' && plan.status !== 'running') return plan
      await sleep(LOOK_EVERY_MS)
    }
  }

  async #call(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    const { status, body: answer } = await callApi(this.#url + path, initOf(method, body, this.#headers))
    if (status >= 300) throw new Error(`${method} ${path} was answered ${status} ${JSON.stringify(answer)}`)
    return answer
  }
}

function assertDone(frames: readonly Frame[]): void {
  const last = frames.at(-1)
  if (last?.event !== 'done') throw new Error(`ended with ${JSON.stringify(last)}`)
  const warned = frames.find(({ data }) => data['code'] !== undefined)
  if (warned) throw new Error(`warned with ${JSON.stringify(warned.data)}`)
}

function assertIncludes(text: string, expected: string): void {
  if (!text.includes(expected)) throw new Error(`a file has '${text}' instead of '${expected}'`)
}
