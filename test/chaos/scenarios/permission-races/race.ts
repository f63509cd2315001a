import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { workspacePath } from '../../../../shared/agent/tools/workspace/workspace.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { EventStream, type Frame } from '../../../support/event-stream.ts'
import { type Entry, now } from '../../history.ts'
import type { Member, World } from '../../world.ts'

export type Reply = { isAllow: boolean; status: number }

/** A run that waits for a permission, and its outcome. */
export class Race {
  /** When the request expires. */
  readonly expiresAt: number
  #repliedAt = 0
  readonly #world: World
  readonly #stream: EventStream
  /** The id of the permission request. */
  readonly request: string

  private constructor(world: World, stream: EventStream, { id, expires_at }: Frame['data']) {
    this.#world = world
    this.#stream = stream
    this.request = String(id)
    this.expiresAt = now() + Date.parse(String(expires_at)) - Date.now()
  }

  /** Starts a run and resolves when it asks for the permission to write a file. */
  static async start(world: World, gateway: Member): Promise<Race> {
    const body = JSON.stringify({ prompt: '/tool Write {"path":"acted","content":"yes"}' })
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
    const stream = await openAccepted(`${gateway.url}/agent/run`, init)
    world.record({ kind: 'opened', t: now(), run: stream.runId, gateway: gateway.name })
    const { data } = await stream.until('permission_request')
    return new Race(world, stream, data)
  }

  /** Sends a reply through this gateway, and again after a 503: it may have been taken all the same. */
  async reply(gateway: Member, isAllow: boolean): Promise<Reply> {
    this.#repliedAt ||= now()
    const path = `/sessions/${this.#stream.runId}/permissions/${this.request}`
    const send = async () => (await this.#world.ask(gateway, { path, body: { allow: isAllow } })).status
    let status = await send()
    for (const until = now() + REFUSED_MS; status === 503 && now() < until; status = await send()) await sleep(RETRY_MS)
    this.#record({ kind: 'reply', request: this.request, isAllow, status })
    return { isAllow, status }
  }

  /** The engine's decision, by its event and by the file, and the time from the first reply to it. */
  async outcome(): Promise<{ isAllowed: boolean; hasActed: boolean; resumedInMs: number }> {
    const { data } = await this.#stream.until('tool_result')
    const resumedInMs = now() - this.#repliedAt
    const folder = workspacePath(join(this.#world.dataDir, 'workspaces'), DEFAULT_TENANT, this.#stream.runId)
    const hasActed = existsSync(join(folder, 'acted'))
    const isAllowed = data['is_error'] === false
    this.#record({ kind: 'decision', request: this.request, isAllow: hasActed })
    await this.#end()
    return { isAllowed, hasActed, resumedInMs }
  }

  async #end(): Promise<void> {
    for (const { id: seq, event } of await this.#stream.all())
      this.#record({ kind: 'frame', seq, event, ...(event === 'done' && { isTerminal: true }) })
    this.#record({ kind: 'closed', how: 'ended' })
  }

  #record(entry: object): void {
    this.#world.record({ t: now(), run: this.#stream.runId, ...entry } as Entry)
  }
}

/** For so long a request that is refused with 503 is sent again, as its answer says: on a busy machine Redis may not answer in time. */
const REFUSED_MS = 20_000
const RETRY_MS = 1_000

async function openAccepted(url: string, init: RequestInit): Promise<EventStream> {
  for (const until = now() + REFUSED_MS; ; await sleep(RETRY_MS)) {
    try {
      return await EventStream.open(url, init)
    } catch (cause) {
      if (now() > until || !String(cause).includes('no stream: 503')) throw cause
    }
  }
}
