/**
 * The longest time, in ms, for which `work` kept the event loop from turning: of this thread's CPU, so that other processes
 * on the machine do not count.
 */
export async function longestStall(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let isOver = false
  let last = cpuMs()
  const turn = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isOver = true
  return Math.max(longest, cpuMs() - last)
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
