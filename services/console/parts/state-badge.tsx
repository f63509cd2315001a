import { Icon, type IconName } from './icon.tsx'

type Look = { tone: '' | 'good' | 'warn' | 'bad' | 'busy'; icon: IconName; word: string }

/** A state of the API as a word and an icon, never only as a colour. */
const LOOKS: Readonly<Record<string, Look>> = {
  running: { tone: 'busy', icon: 'spinner', word: 'Running' },
  waiting: { tone: 'warn', icon: 'clock', word: 'Waiting' },
  pending: { tone: '', icon: 'clock', word: 'Pending' },
  queued: { tone: '', icon: 'clock', word: 'Queued' },
  done: { tone: 'good', icon: 'check', word: 'Done' },
  ok: { tone: 'good', icon: 'check', word: 'OK' },
  completed: { tone: 'good', icon: 'check', word: 'Done' },
  delivered: { tone: 'good', icon: 'check', word: 'Delivered' },
  published: { tone: 'good', icon: 'check', word: 'Published' },
  allowed: { tone: 'good', icon: 'check', word: 'Allowed' },
  denied: { tone: 'bad', icon: 'cross', word: 'Denied' },
  expired: { tone: 'warn', icon: 'clock', word: 'No answer in time' },
  withdrawn: { tone: '', icon: 'dash', word: 'Withdrawn' },
  failed: { tone: 'bad', icon: 'cross', word: 'Failed' },
  error: { tone: 'bad', icon: 'cross', word: 'Error' },
  rejected: { tone: 'bad', icon: 'cross', word: 'Rejected' },
  dead: { tone: 'bad', icon: 'cross', word: 'Given up' },
  invalid_output: { tone: 'warn', icon: 'warn', word: 'Invalid output' },
  cancelled: { tone: '', icon: 'stop', word: 'Cancelled' },
  skipped: { tone: '', icon: 'dash', word: 'Skipped' },
  active: { tone: 'good', icon: 'check', word: 'Active' },
  draining: { tone: 'warn', icon: 'clock', word: 'Draining' },
  silent: { tone: 'bad', icon: 'warn', word: 'No sign of life' },
  paused: { tone: 'warn', icon: 'pause', word: 'Paused' },
  draft: { tone: '', icon: 'dash', word: 'Draft' },
}

export function StateBadge({ state, word }: { state: string; word?: string | undefined }) {
  const look = LOOKS[state] ?? { tone: '', icon: 'info', word: state }
  return (
    <span class={`badge ${look.tone}`} data-state={state}>
      <Icon name={look.icon} />
      {word ?? look.word}
    </span>
  )
}
