import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../engine.ts'
import type { Probe } from './pod-spec.ts'

type Container = { engine: Engine; name: string; ip: string }

/** Executes a probe as kubelet does. Yields whether it passes, each time that this changes, until the signal. */
export async function* watchProbe(probe: Probe, container: Container, signal: AbortSignal): AsyncGenerator<boolean> {
  let last: boolean | undefined
  let failures = 0
  await pause(probe.delaySecs, signal)
  while (!signal.aborted) {
    const passes = await passesOnce(probe, container)
    failures = passes ? 0 : failures + 1
    if ((passes || failures >= probe.failures) && passes !== last && !signal.aborted) {
      last = passes
      yield passes
    }
    await pause(probe.periodSecs, signal)
  }
}

async function passesOnce({ check, timeoutSecs }: Probe, { engine, name, ip }: Container): Promise<boolean> {
  if ('command' in check) {
    const exec = ['exec', name, 'timeout', String(timeoutSecs), ...check.command]
    return (await engine.tryDocker(exec)).code === 0
  }
  const headers = { 'user-agent': 'kube-probe/1.30', connection: 'close' }
  const init = { headers, redirect: 'manual', signal: AbortSignal.timeout(timeoutSecs * 1_000) } as const
  const answer = await fetch(`http://${ip}:${check.port}${check.path}`, init).catch(() => undefined)
  await answer?.body?.cancel().catch(() => {})
  return answer !== undefined && answer.status >= 200 && answer.status < 400
}

export const pause = (secs: number, signal?: AbortSignal): Promise<void> =>
  sleep(secs * 1_000, undefined, signal && { signal }).catch(() => {})
