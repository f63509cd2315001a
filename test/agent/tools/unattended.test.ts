import { expect } from 'chai'
import { openTools } from '../../../services/wiring/open-tools.ts'
import type { Policy, Tool, ToolBox } from '../../../shared/agent/tools/port.ts'
import { onlyNamed, unattended } from '../../../shared/agent/tools/unattended.ts'
import { standalone } from '../../platform/config/load.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { boxOf, toolOf } from '../../work/flows/execute/setup.ts'

const tool = (name: string, defaultPolicy: Policy, more: Partial<Tool> = {}): Tool => ({
  ...toolOf(name),
  defaultPolicy,
  ...more,
})

const BOX = boxOf([
  tool('Read', 'allow'),
  tool('Write', 'ask'),
  tool('Edit', 'ask'),
  tool('WebFetch', 'ask'),
  tool('Bash', 'deny'),
  tool('ExitPlanMode', 'allow', { alwaysAsks: true }),
])

const policiesOf = (box: ToolBox) => Object.fromEntries(box.tools.map(({ name }) => [name, box.policyOf(name, {})]))

describe('the tools of a run in which nobody can be asked', () => {
  it('D7.4: may change the files of the workspace; all others that would ask are denied', () => {
    expect(policiesOf(unattended(BOX, new Map()))).to.deep.equal({
      Read: 'allow',
      Write: 'allow',
      Edit: 'allow',
      WebFetch: 'deny',
      Bash: 'deny',
      ExitPlanMode: 'deny',
    })
  })

  it('D7.4: PLAN_PERMISSIONS decides for tools that would ask, and can restrict others', () => {
    const entries: [string, Policy][] = [
      ['Read', 'deny'],
      ['Write', 'deny'],
      ['Edit', 'ask'],
      ['WebFetch', 'allow'],
      ['Bash', 'allow'],
      ['ExitPlanMode', 'allow'],
    ]
    expect(policiesOf(unattended(BOX, new Map(entries)))).to.deep.equal({
      Read: 'deny',
      Write: 'deny',
      Edit: 'deny',
      WebFetch: 'allow',
      Bash: 'deny',
      ExitPlanMode: 'deny',
    })
  })

  it('an unknown tool is denied, also one that is called like a workspace tool', () => {
    expect(unattended(boxOf([]), new Map()).policyOf('Write', {})).to.equal('deny')
  })

  it('are otherwise those of the process', () => {
    const box = unattended(BOX, new Map())
    expect(box.tools).to.equal(BOX.tools)
    expect(box.find('Read')).to.equal(BOX.find('Read'))
  })

  it('can be narrowed to the named ones, in their order; unknown names are left out', () => {
    const box = onlyNamed(BOX, ['WebFetch', 'Read', 'Gone'])
    expect(box.tools.map(({ name }) => name)).to.deep.equal(['Read', 'WebFetch'])
    expect([box.find('Read')?.name, box.find('Write'), box.find('Gone')]).to.deep.equal(['Read', undefined, undefined])
    expect(box.policyOf('WebFetch', {})).to.equal('ask')
  })

  it('D1.3: PLAN_PERMISSIONS for an unknown tool stops the start; a tool may be one that this process does not offer', async () => {
    const log = SILENT_LOG
    const open = (policies: string) => openTools(standalone({ PLAN_PERMISSIONS: policies }), log)
    const failure: unknown = await open('{"Wirte":"allow"}').catch((cause: unknown) => cause)
    expect(failure)
      .to.have.property('message')
      .that.matches(/^PLAN_PERMISSIONS: there is no tool Wirte\. The tools are /)
    await (await open('{"Bash":"deny","mcp__away__x":"allow"}')).close()
  })

  it('an input is checked as by the process', async () => {
    const strict = { ...BOX, problemWith: ((name: string) => `${name} is wrong`) as never }
    for (const box of [unattended(strict, new Map()), onlyNamed(strict, ['Read'])])
      expect(await box.problemWith('Read', {})).to.equal('Read is wrong')
  })
})
