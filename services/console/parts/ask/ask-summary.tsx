import type { Ask } from '../../api/pending.ts'
import { Line, Lines } from '../foreign.tsx'
import { Deadline } from './deadline.tsx'
import { summaryOf } from './preview.tsx'

/** A permission request in a list: its tool, its deadline, and one line about the call. `others`: the number of equal requests. */
export const AskSummary = ({ ask, others = 0 }: { ask: Ask; others?: number }) => (
  <>
    <span class="row tight">
      <strong class="grow cut">
        <Line text={ask.tool_name} />
        {others > 0 && ` × ${others + 1}`}
      </strong>
      <Deadline ask={ask} />
    </span>
    <span class="cut soft">
      <Lines text={summaryOf(ask)} />
    </span>
  </>
)
