import type { Answer, Entry, Violation } from '../history.ts'

/** `tenant-crossing`, `secret-leaked`, `forged-token-accepted` and `wrong-refusal`. */
export function checkExposure(history: readonly Entry[]): Violation[] {
  return history.flatMap((entry): Violation[] => {
    const say = (rule: Violation['rule'], what: string) => [{ rule, what, evidence: [entry] }]
    if (entry.kind === 'sighting' && entry.of !== entry.by)
      return say('tenant-crossing', `${entry.where}: ${entry.by} was shown data of ${entry.of}`)
    if (entry.kind === 'leak') return say('secret-leaked', `${entry.where}: shows the secret ${entry.secret}`)
    if (entry.kind !== 'answer') return []
    const rule = ruleBroken(entry)
    return rule ? say(rule, `${entry.route}: ${entry.status} for a wrong ${entry.wrong}`) : []
  })
}

/** 503 is right for a token that cannot be verified at the moment (D3.1). */
function ruleBroken({ status, wrong }: Answer): 'forged-token-accepted' | 'wrong-refusal' | undefined {
  if (wrong === 'token' && status < 400) return 'forged-token-accepted'
  if (wrong === 'token' && status === 503) return undefined
  return status < 400 || status >= 500 ? 'wrong-refusal' : undefined
}
