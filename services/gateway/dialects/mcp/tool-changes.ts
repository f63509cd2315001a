import type { ServerEventBus } from '@modelcontextprotocol/server'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { EventStreams } from '../../streams/event-streams.ts'

const FLOWS = { types: new Set(['flow.changed'] as const) }

/** Opens the stream of changes of a tenant's flows, from this moment on, for one subscriber. Throws `unavailable` when the events cannot be read. */
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

  /** Calls `listener` when the process stops and no more changes come; the subscriber reconnects to another process. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener
  }

  publish(): void {}

  subscribe(listener: Parameters<ServerEventBus['subscribe']>[0]): () => void {
    this.#isFollowed = true
    void this.#follow(() => listener({ kind: 'tools_list_changed' })).finally(() => this.#onEnd())
    return () => this.#close()
  }

  /** Closes the stream for a request that was refused and never subscribed. */
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
