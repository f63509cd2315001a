const LOOK_EVERY_MS = 1

/**
 * The longest time, in ms, for which `work` kept the event loop from turning: of this thread's CPU, so that other processes
 * on the machine do not count.
 */
export async function longestStall(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let last = cpuMs()
  const look = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - last)
    last = now
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  look()
  return longest
}

/** The CPU time of this thread. Measured with it, a duration does not depend on what else the machine does. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
