import type { Bus } from '../bus/bus.ts'

const CHANNEL = 'moved'

/** Tells all gateways that these runs are at the worker of this epoch now, which has recorded that. The message may be lost: gateways also look. */
export function announceMoves(bus: Pick<Bus, 'publish'>, runIds: readonly string[], epoch: number): void {
  if (runIds.length > 0) bus.publish(CHANNEL, Buffer.from([epoch, ...runIds].join(' '))).catch(() => {})
}

/** Calls `onMoved` with the runs of every such message from now on. */
export async function listenForMoves(
  bus: Pick<Bus, 'subscribe'>,
  onMoved: (runIds: readonly string[], epoch: number) => void,
): Promise<void> {
  await bus.subscribe(CHANNEL, (message) => {
    const [, epoch, runIds = ''] = /^(\d{1,10}) (run_[\w ]+)$/.exec(message.toString()) ?? []
    if (epoch !== undefined) onMoved(runIds.split(' '), Number(epoch))
  })
}
