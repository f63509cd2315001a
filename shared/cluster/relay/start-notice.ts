import type { Bus } from '../bus/bus.ts'

const CHANNEL = 'started'

/** Tells all gateways that the executor of this epoch has begun a queued run. The message may be lost: waiting gateways also look. */
export function announceStart(bus: Pick<Bus, 'publish'>, runId: string, epoch: number): void {
  bus.publish(CHANNEL, Buffer.from(`${runId} ${epoch}`)).catch(() => {})
}

/** Calls `onStarted` for every start from now on. Resolves with a function that ends it. */
export async function listenForStarts(
  bus: Pick<Bus, 'subscribe' | 'unsubscribe'>,
  onStarted: (runId: string, epoch: number) => void,
): Promise<() => Promise<void>> {
  await bus.subscribe(CHANNEL, (message) => {
    const [, runId, epoch] = /^(run_[0-9a-f]{32}) (\d{1,10})$/.exec(message.toString()) ?? []
    if (runId !== undefined) onStarted(runId, Number(epoch))
  })
  return () => bus.unsubscribe(CHANNEL)
}
