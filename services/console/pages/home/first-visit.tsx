import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Schema } from '../../../../shared/client/api.ts'
import { caller, has, may } from '../../api/caller.ts'
import { hrefOf } from '../../base/router.ts'
import { Icon } from '../../parts/icon.tsx'
import { lazy } from '../../parts/lazy.tsx'

type Run = Schema<'Run'>

const DemoRun = lazy(() => import('./demo-run.tsx').then((loaded) => loaded.DemoRun))
const FirstCall = lazy(() => import('./first-call.tsx').then((loaded) => loaded.FirstCall))

/** What is shown below the cards. */
type Part = 'demo' | 'code' | undefined

/** An introduction with the first three steps. It is hidden after they are done. `runs`: all runs of the tenant. */
export function FirstVisit({ runs }: { runs: readonly Run[] }) {
  const open = useSignal<Part>(undefined)
  const { model } = caller().value ?? {}
  const call = runs.find(({ kind }) => kind !== 'message')
  const own = typeof model === 'string' && model !== 'demo' ? model : undefined
  const done = [runs.length > 0, own !== undefined || !mayConfigure(), call !== undefined]
  if (!may('run') || (done.every(Boolean) && open.value === undefined)) return null
  return (
    <section class="stack" aria-label="First steps">
      <div>
        <h2>Agents for your product, with people in charge</h2>
        <p class="soft prose">
          They answer your programs, use tools, and ask a person before they change anything.{' '}
          {done.filter(Boolean).length} of 3 first steps done.
        </p>
      </div>
      <ol class="first-steps">
        <Step title="See it work" isDone={runs.length > 0} text={own ? SEE_REAL : SEE_DEMO}>
          <OpenPart part="demo" open={open} isMain={runs.length === 0}>
            {own ? 'Run an agent' : 'Run the demo'}
          </OpenPart>
        </Step>
        {mayConfigure() && <ModelStep own={own} />}
        <Step title="Call it from code" isDone={call !== undefined} text={CALL}>
          <OpenPart part="code" open={open}>
            Show the code
          </OpenPart>
        </Step>
      </ol>
      {open.value === 'demo' && <DemoRun />}
      {open.value === 'code' && <FirstCall call={call} />}
    </section>
  )
}

const SEE_DEMO = 'The built-in demo writes a note here, and asks you first. It needs no key.'
const SEE_REAL = 'An agent writes a note here, and asks you first.'
const CALL = 'One request from your program, in curl, TypeScript or Python.'
const MODEL = 'Choose a provider and paste a key: its models are found, tried and used within a minute.'

const ModelStep = ({ own }: { own: string | undefined }) => (
  <Step title="Put in your model" isDone={own !== undefined} text={own === undefined ? MODEL : `${own} answers.`}>
    <a class="button" href={hrefOf('/settings')}>
      {own === undefined ? 'Choose a provider' : 'See the models'}
    </a>
  </Step>
)

type OpenPartProps = { part: Part; open: Signal<Part>; isMain?: boolean; children: ComponentChildren }

const OpenPart = ({ part, open, isMain = false, children }: OpenPartProps) => (
  <button
    type="button"
    class={isMain ? 'button main' : 'button'}
    aria-expanded={open.value === part}
    onClick={() => (open.value = open.value === part ? undefined : part)}
  >
    {children}
  </button>
)

const mayConfigure = () => may('admin') && has('config')

type StepProps = { title: string; text: string; isDone: boolean; children: ComponentChildren }

const Step = ({ title, text, isDone, children }: StepProps) => (
  <li class={isDone ? 'card padded done' : 'card padded'}>
    <h3>
      {title}{' '}
      {isDone && (
        <span class="badge good">
          <Icon name="check" />
          Done
        </span>
      )}
    </h3>
    <p class="soft">{text}</p>
    {children}
  </li>
)
