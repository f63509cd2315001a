import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { operationsOf } from '../platform/api/operations.ts'
import { apiDocument } from '../support/api-document.ts'
import { AeHere } from './ae-here.ts'
import { type Commands, commandsOf, isAsShown } from './blocks.ts'
import type { Shell } from './shell.ts'
import { Stage } from './stage.ts'

const FILE = new URL('../../shared/platform/api/guide.md', import.meta.url)
const guide = await readFile(FILE, 'utf8')
const document = await apiDocument()
/** The settings with which the guide has the server started. */
const [, variables = ''] = /`((?:[A-Z_]+=\S+ )+)scripts\/start`/.exec(guide) ?? []

describe('shared/platform/api/guide.md', () => {
  let stage: Stage
  let shell: Shell
  let ae: AeHere
  before(async () => {
    stage = await Stage.open(
      Object.fromEntries(
        variables
          .trim()
          .split(' ')
          .map((each) => each.split('=', 2)),
      ),
    )
    shell = await stage.shell()
    ae = await AeHere.start()
    await shell.run(ae.definition)
  })
  after(async () => {
    await shell?.close()
    await ae?.[Symbol.asyncDispose]()
    await stage?.close()
  })

  for (const { line, text, output } of commandsOf(guide))
    it(`the commands in line ${line}, as they are printed, are answered as the guide shows`, async () => {
      const printed = await shell.run(text)
      if (output !== undefined) expect(isAsShown(output, printed), `printed:\n${printed}`).to.equal(true)
    })

  it('calls every operation of the API description', () => {
    const called = commandsOf(guide).flatMap(requestsOf)
    const missing = operationsOf(document).filter(({ method, path }) => {
      const pattern = new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
      return !called.some((each) => pattern.test(each))
    })
    expect(missing.map(({ method, path }) => `${method} ${path}`)).to.deep.equal([])
  })
})

/** The requests of a block, as `GET /path`. */
function requestsOf({ text }: Commands): string[] {
  return text
    .replaceAll(/\\\n/g, '')
    .split(/(?=curl )/)
    .flatMap((command) => {
      const path = /\$api([^\s"?|)]*)/.exec(command)?.[1]
      if (path === undefined) return []
      const method = / -X (\w+)/.exec(command)?.[1] ?? (/ -[dF] /.test(command) ? 'POST' : 'GET')
      return [`${method} ${path}`]
    })
}
