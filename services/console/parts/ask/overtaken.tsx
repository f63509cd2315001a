import { Notice } from '../notice.tsx'
import { sentenceOf } from './reply.ts'
import { typedInput, typedReason } from './typed.ts'

type OvertakenProps = { id: string; decided: Parameters<typeof sentenceOf>[0] }

/** Shown when a request was decided elsewhere while the person was still writing an answer: the written text, and the decision. */
export function Overtaken({ id, decided }: OvertakenProps) {
  const [reason, input] = [typedReason(id), typedInput(id)]
  if (reason.value === '' && input.value === undefined) return null
  const drop = () => {
    reason.value = ''
    input.value = undefined
  }
  return (
    <Notice tone="warn">
      <div class="row">
        <span class="grow">
          Somebody was faster: {sentenceOf(decided)}.{reason.value !== '' && ` You had written: ${reason.value}`}
        </span>
        <button type="button" class="button" onClick={drop}>
          Drop what I wrote
        </button>
      </div>
      {input.value !== undefined && <pre class="code">{input.value}</pre>}
    </Notice>
  )
}
