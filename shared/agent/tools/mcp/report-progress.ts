/** So many reports go on at once, and then one in each interval. */
const BURST = 5
const INTERVAL_MS = 200

export type Progress = { report: (progress: number, detail: string) => void; end: () => void }

/** Passes the progress of a call on. Of reports that come faster than a person reads, the newest goes on. */
export function createProgress(report: Progress['report']): Progress {
  let [room, held]: [number, Parameters<Progress['report']> | undefined] = [BURST, undefined]
  let timer: NodeJS.Timeout | undefined
  const refill = () => {
    room = Math.min(BURST, room + 1)
    if (held) send(...held)
    if (room < BURST) return
    clearInterval(timer)
    timer = undefined
  }
  const send: Progress['report'] = (...args) => {
    held = undefined
    room -= 1
    timer ??= setInterval(refill, INTERVAL_MS).unref()
    report(...args)
  }
  return {
    report(...args) {
      if (room > 0) send(...args)
      else held = args
    },
    end: () => clearInterval(timer),
  }
}
