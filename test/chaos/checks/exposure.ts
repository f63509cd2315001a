import type { Answer, Entry, Violation } from '../history.ts'

/** N4, N7, N10 and I10: tenants are walls, secrets stay in, forged tokens stay out, and bad input is a 4xx. */
export function checkExposure(history: readonly Entry[]): Violation[] {
  return history.flatMap((entry): Violation[] => {
    const say = (rule: Violation['rule'], what: string) => [{ rule, what, evidence: [entry] }]
    if (entry.kind === 'sighting' && entry.of !== entry.by)
      return say('N4', `${entry.where}: ${entry.by} was shown what is ${entry.of}'s`)
    if (entry.kind === 'leak') return say('N7', `${entry.where}: shows the secret ${entry.secret}`)
    if (entry.kind !== 'answer') return []
    const rule = ruleBroken(entry)
    return rule ? say(rule, `${entry.route}: ${entry.status} for a wrong ${entry.wrong}`) : []
  })
}

/** A token that cannot be checked now is 503 (D3.1). */
function ruleBroken({ status, wrong }: Answer): 'N10' | 'I10' | undefined {
  if (wrong === 'token' && status < 400) return 'N10'
  if (wrong === 'token' && status === 503) return undefined
  return status < 400 || status >= 500 ? 'I10' : undefined
}
