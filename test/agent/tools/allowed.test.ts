import { expect } from 'chai'
import { allowedOnly, shownOnly, unknownRule } from '../../../shared/agent/tools/allowed.ts'
import type { Policy, Tool } from '../../../shared/agent/tools/port.ts'
import { createBashTool } from '../../../shared/agent/tools/process/bash.ts'
import { createToolRegistry } from '../../../shared/agent/tools/registry.ts'
import { createFileTools } from '../../../shared/agent/tools/workspace/file-tools.ts'
import { createSearchTools } from '../../../shared/agent/tools/workspace/search-tools.ts'

const SCHEMAS = { findUnusable: async () => [], check: async () => [] }

/** The file tools, Grep and Bash of a server with these policies. */
const boxWith = (permissions: Record<string, Policy>) =>
  createToolRegistry({
    tools: [...createFileTools(), ...createSearchTools(), createBashTool()] as Tool[],
    permissions: new Map(Object.entries(permissions)),
    schemas: SCHEMAS,
  })

describe('the tools that one run is allowed', () => {
  it('D42.1: are those that a rule names, in their order; an empty list names none', async () => {
    const box = await boxWith({})
    const names = (allowed: readonly string[]) => allowedOnly(box, allowed).tools.map(({ name }) => name)
    expect(names(['Bash(git *)', 'Read'])).to.deep.equal(['Read', 'Bash'])
    expect(names(['G*'])).to.deep.equal(['Glob', 'Grep'])
    expect(names([])).to.deep.equal([])
    expect(allowedOnly(box, ['Read']).find('Bash')).to.equal(undefined)
  })

  it('D42.1: never add to the policy of the server, however wide a rule is', async () => {
    const box = await boxWith({ Bash: 'ask', 'Bash(git push*)': 'deny', Write: 'deny' })
    const wide = allowedOnly(box, ['*', 'Bash(*)', 'Bash(git push*)', 'Write(*)'])
    const policies = ['git push origin', 'rm -rf .'].map((command) => wide.policyOf('Bash', { command }))
    expect(policies).to.deep.equal(['deny', 'ask'])
    expect(wide.policyOf('Write', { path: 'a', content: '' })).to.equal('deny')
  })

  it('D42.1: a call that no rule allows is denied, and so is one that does more than a rule names, edited or not', async () => {
    const narrow = allowedOnly(await boxWith({ Bash: 'allow' }), ['Bash(git *)', 'Read'])
    const policies = ['git status', 'ls', 'git status; rm -rf .'].map((command) =>
      narrow.policyOf('Bash', { command }, command === 'ls'),
    )
    expect(policies).to.deep.equal(['allow', 'deny', 'deny'])
    expect(narrow.policyOf('Read', { path: 'a' })).to.equal('allow')
  })

  it('D42.1: a tool asks what it may reach as before, within the rules for what it reaches', async () => {
    const box = await boxWith({ 'Read(secret*)': 'deny' })
    const grep = allowedOnly(box, ['Grep'])
    const [open, secret] = ['a.txt', 'secret.txt'].map((path) => grep.policyOf('Read', { path }))
    expect([open, secret]).to.deep.equal(['allow', 'deny'])
    expect(allowedOnly(box, ['Grep', 'Read(docs/*)']).policyOf('Read', { path: 'a.txt' })).to.equal('deny')
  })

  it('D42.2: are shown and cannot be called where none is chosen', async () => {
    const box = shownOnly(await boxWith({}))
    expect([box.tools.length > 3, box.find('Read')]).to.deep.equal([true, undefined])
  })

  it('D42.1: tells of the first rule that names no tool', async () => {
    const box = await boxWith({})
    expect(unknownRule(box, ['Read', 'Nothing(x)', 'None'])).to.deep.equal([1, 'Nothing(x)'])
    expect(unknownRule(box, ['R*'])).to.equal(undefined)
  })
})
