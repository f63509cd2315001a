/**
 * Carries messages between the processes of a cluster, over named channels. Each process has a bus of its own, which leads to those of
 * the others. A message may be lost without an error anywhere; those that arrive come in the order in which one process has published
 * them on a channel.
 */
export interface Bus {
  /** Resolves with the number of processes that the message is sent to. Rejects within a second or so while the bus is away. */
  publish(channel: string, message: Buffer): Promise<number>
  /**
   * Calls `onMessage` with each message that is published on this channel after the promise has resolved, by this process too. A
   * process subscribes to a channel once. An error that `onMessage` throws is an uncaught one, and keeps no other message back.
   */
  subscribe(channel: string, onMessage: (message: Buffer) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Makes all subscriptions again, which were lost. It happens by itself when the connection was away. */
  resubscribe(): Promise<void>
  /** Replaces the connection for subscriptions: the present one hangs. */
  reconnect(): void
  /** For how long the bus has not answered; 0 while it does. */
  awayMs(): number
  close(): Promise<void>
}
