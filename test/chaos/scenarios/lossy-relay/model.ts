import { answerDirectives } from '../../../support/model-server/directives.ts'
import { startModelServer } from '../../../support/model-server/model-server.ts'
import type { Step } from '../../../support/model-server/script.ts'
import { Chain } from './chain.ts'

/**
 * A model server that answers `/chain NAME COUNT PIECES MS` with a chain of COUNT pieces, PIECES at a time and MS milliseconds
 * apart. It writes several pieces as one prepared chunk, since a million single writes would saturate a core.
 */
const server = await startModelServer({ record: false })
server.otherwise((request) => {
  const [, name = '', count, pieces, ms] = /^\/chain (\S+) (\d+) (\d+) (\d+)$/.exec(request.prompt) ?? []
  if (count === undefined) return answerDirectives(request)
  return chainSteps(new Chain(name), { count: Number(count), pieces: Number(pieces), ms: Number(ms) })
})
process.stdout.write(`listening ${server.url}\n`)

function chainSteps(chain: Chain, { count, pieces, ms }: { count: number; pieces: number; ms: number }): Step[] {
  const steps: Step[] = []
  while (chain.count < count) {
    let raw = ''
    for (let left = Math.min(pieces, count - chain.count); left > 0; left--) raw += chunkOf(chain.next())
    steps.push({ raw })
    if (ms > 0) steps.push({ wait: ms })
  }
  return steps
}

const chunkOf = (content: string) => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
