import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { apiUrl, needsToken } from '../../api/engine.ts'
import { CopyText } from '../../parts/request-texts.tsx'
import { nameOf, placeOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'

const BODY = '{"prompt": "Say hello."}'

/** The first run of a program. `hasToken`: the program reads a token from `AE_TOKEN`. */
const TEXTS: Readonly<Record<string, (url: string, hasToken: boolean) => string>> = {
  curl: (url, hasToken) =>
    [
      `curl -N '${url}/agent/run'`,
      ...(hasToken ? ['-H "Authorization: Bearer $AE_TOKEN"'] : []),
      `-H 'Content-Type: application/json' -d '${BODY}'`,
    ].join(' \\\n  '),
  TypeScript: (url, hasToken) => `import { AgentEngine } from '@agent-engine/client'

const engine = new AgentEngine({ url: '${url}'${hasToken ? ', token: process.env.AE_TOKEN' : ''} })
for await (const text of engine.run({ prompt: 'Say hello.' }).textStream()) process.stdout.write(text)`,
  Python: (url, hasToken) => `${hasToken ? 'import os\n' : ''}from agent_engine import AgentEngine

engine = AgentEngine("${url}"${hasToken ? ', token=os.environ["AE_TOKEN"]' : ''})
with engine.run("Say hello.") as run:
    for text in run.text():
        print(text, end="")`,
}

/** A request to copy, and whether it has come. */
export function FirstCall({ call }: { call: Schema<'Run'> | undefined }) {
  const language = useSignal('curl')
  return (
    <div class="card padded stack first-call">
      <div class="row" role="group" aria-label="Language">
        {Object.keys(TEXTS).map((name) => (
          <button
            key={name}
            type="button"
            class="button"
            aria-pressed={language.value === name}
            onClick={() => (language.value = name)}
          >
            {name}
          </button>
        ))}
      </div>
      <CopyText name={language.value} text={TEXTS[language.value]?.(apiUrl(), needsToken()) ?? ''} />
      <p class="row" role="status">
        {call ? (
          <>
            <StateBadge state="done" word="Got it" />
            <a href={placeOf(call)}>{nameOf(call)}</a>
          </>
        ) : (
          <StateBadge state="running" word="Waiting for your first call …" />
        )}
      </p>
    </div>
  )
}
