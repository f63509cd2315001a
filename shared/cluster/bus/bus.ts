/**
 * Carries messages between the processes of a cluster, over named channels. Each process has its own bus, which is connected to those
 * of the others. A message may be lost without an error. Messages of one process on one channel arrive in the order in which they were
 * published.
 */
export interface Bus {
  /** Resolves with the number of processes that the message is sent to. Rejects within a second or so while the bus is away. */
  publish(channel: string, message: Buffer): Promise<number>
  /**
   * Calls `onMessage` with each message that is published on this channel after the promise has resolved, also by this process.
   * A process subscribes to a channel only once. An error that `onMessage` throws becomes an uncaught exception, and does not
   * stop other messages.
   */
  subscribe(channel: string, onMessage: (message: Buffer) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Renews all subscriptions after they were lost. It happens by itself when the connection was away. */
  resubscribe(): Promise<void>
  /** Replaces the connection for subscriptions because the present one hangs. */
  reconnect(): void
  /** For how long the bus has not answered; 0 while it does. */
  awayMs(): number
  close(): Promise<void>
}
