/** An open stream that is told from time to time to show that it lives. */
export interface KeepaliveTarget {
  beat(): void
}

export interface Keepalive {
  add(stream: KeepaliveTarget): void
  delete(stream: KeepaliveTarget): void
}

const SLOT_MS = 100

/**
 * One timer for all streams of the process: a wheel whose slots come round every `intervalMs`. Streams stand in the slot that was
 * current when they opened, so that their beats are as spread as their openings; without streams the timer rests.
 */
export function createKeepalive(intervalMs: number): Keepalive {
  const wheel = Array.from({ length: Math.max(1, Math.round(intervalMs / SLOT_MS)) }, () => new Set<KeepaliveTarget>())
  const slots = new Map<KeepaliveTarget, Set<KeepaliveTarget>>()
  let current = 0
  let timer: NodeJS.Timeout | undefined

  const turn = (): void => {
    current = (current + 1) % wheel.length
    for (const stream of wheel[current] ?? []) stream.beat()
  }
  return {
    add(stream) {
      const slot = wheel[current]
      if (!slot) return
      slot.add(stream)
      slots.set(stream, slot)
      timer ??= setInterval(turn, SLOT_MS).unref()
    },
    delete(stream) {
      slots.get(stream)?.delete(stream)
      slots.delete(stream)
      if (slots.size > 0) return
      clearInterval(timer)
      timer = undefined
    },
  }
}
