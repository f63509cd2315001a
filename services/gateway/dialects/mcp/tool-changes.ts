import type { ServerEventBus } from '@modelcontextprotocol/server'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { EventStreams } from '../../streams/event-streams.ts'

const FLOWS = { types: new Set(['flow.changed'] as const) }

/** The changes of a tenant's flows, from this moment on, for one subscriber. Throws `unavailable` when the events cannot be read. */
export async function openToolChanges(eventStreams: EventStreams, tenant: TenantId): Promise<ToolChanges> {
  return new ToolChanges(await eventStreams.open(tenant, FLOWS))
}

type Stream = Awaited<ReturnType<EventStreams['open']>>

class ToolChanges implements ServerEventBus {
  readonly #stream: Stream
  #onEnd = () => {}
  #isFollowed = false

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** `listener` is called when nothing follows, because the process stops: the subscriber comes back elsewhere. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener
  }

  publish(): void {}

  subscribe(listener: Parameters<ServerEventBus['subscribe']>[0]): () => void {
    this.#isFollowed = true
    void this.#follow(() => listener({ kind: 'tools_list_changed' })).finally(() => this.#onEnd())
    return () => this.#close()
  }

  /** For a request that was refused, and never subscribes. */
  closeUnlessFollowed(): void {
    if (!this.#isFollowed) this.#close()
  }

  async #follow(onChange: () => void): Promise<void> {
    for await (const _ of this.#stream) onChange()
  }

  #close(): void {
    void this.#stream.return()
  }
}
