import type { PermissionAsk } from '../../../shared/client/client.ts'
import { type Io, isInteractive } from '../io.ts'
import type { Output } from '../output.ts'
import { countdown } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import { type Approval, ruleFor } from './approval.ts'
import type { Screen } from './ask-person.ts'
import { callText } from './call-line.ts'

type Place = { io: Io; output: Output; screen: Screen; approval: Approval }

/** Answers the requests of a run: by rule, by the person at the terminal, one after the other, or not at all. */
export function createAnswers(place: Place): (ask: PermissionAsk) => Promise<void> {
  let asked = Promise.resolve()
  return async (ask) => {
    if (await isAnsweredByRule(ask, place)) return
    if (!isInteractive(place.io)) return leavePending(ask, place)
    // Loaded with the first question: most runs have none.
    asked = asked.then(async () => (await import('./ask-person.ts')).askPerson(ask, place))
    await asked
  }
}

async function isAnsweredByRule(ask: PermissionAsk, { approval, screen, output: { style } }: Place): Promise<boolean> {
  const rule = ruleFor(approval.rules, ask)
  const call = callText(ask)
  if (rule !== undefined || approval.mode === 'all') {
    screen.print(style.dim(`  ${call} is allowed by ${rule ? `--allow '${plainLine(rule.text)}'` : '--approve all'}`))
    await ask.allow()
    return true
  }
  if (approval.mode !== 'never') return false
  await ask.deny('denied by --approve never')
  return true
}

/** Without a terminal nobody is asked here: it stays pending for someone elsewhere. */
function leavePending(ask: PermissionAsk, { screen }: Place): void {
  const left = countdown(ask.expiresAt.getTime() - Date.now())
  const call = callText(ask)
  screen.print(`waiting for permission ${ask.id} (${call}): ae allow ${ask.id} (denied in ${left})`)
}
