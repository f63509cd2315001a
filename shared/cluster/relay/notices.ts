import type { Bus } from '../bus/bus.ts'

const STARTED = 'started'
const MOVED = 'moved'

/** Tells all gateways that the executor of this epoch has begun a queued run. The message may be lost: waiting gateways also look. */
export function announceStart(bus: Pick<Bus, 'publish'>, runId: string, epoch: number): void {
  bus.publish(STARTED, Buffer.from(`${runId} ${epoch}`)).catch(() => {})
}

/** Calls `onStarted` for every start from now on. */
export async function listenForStarts(
  bus: Pick<Bus, 'subscribe'>,
  onStarted: (runId: string, epoch: number) => void,
): Promise<void> {
  await bus.subscribe(STARTED, (message) => {
    const [, runId, epoch] = /^(run_[0-9a-f]{32}) (\d{1,10})$/.exec(message.toString()) ?? []
    if (runId !== undefined) onStarted(runId, Number(epoch))
  })
}

/** Tells all gateways that the worker of this epoch now has these runs, and has recorded that. The message may be lost: gateways also look. */
export function announceMoves(bus: Pick<Bus, 'publish'>, runIds: readonly string[], epoch: number): void {
  if (runIds.length > 0) bus.publish(MOVED, Buffer.from([epoch, ...runIds].join(' '))).catch(() => {})
}

/** Calls `onMoved` with the runs of every such message from now on. */
export async function listenForMoves(
  bus: Pick<Bus, 'subscribe'>,
  onMoved: (runIds: readonly string[], epoch: number) => void,
): Promise<void> {
  await bus.subscribe(MOVED, (message) => {
    const [, epoch, runIds = ''] = /^(\d{1,10}) (run_[\w ]+)$/.exec(message.toString()) ?? []
    if (epoch !== undefined) onMoved(runIds.split(' '), Number(epoch))
  })
}
