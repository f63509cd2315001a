import { expect } from 'chai'
import { CliError } from '../../../services/cli/exit-codes.ts'
import { parseRule, ruleFor } from '../../../services/cli/follow/approval.ts'

const allows = (rule: string, toolName: string, input: Record<string, unknown>) =>
  ruleFor([parseRule(rule)], { toolName, input }) !== undefined

describe('services/cli/follow/approval', () => {
  it('a rule without brackets allows every call of its tool, and of no other', () => {
    expect(allows('Write', 'Write', { path: '../x' })).to.equal(true)
    expect(allows('Write', 'WriteAll', {})).to.equal(false)
    expect(allows('mcp__github__*', 'mcp__github__list', {})).to.equal(true)
  })

  it('a rule for paths allows what lies there, and nothing that only seems to', () => {
    const writes = (path: string) => allows('Write(notes/*)', 'Write', { path })
    expect(['notes/a.txt', './notes/a.txt', 'notes/b/c.txt', 'x/../notes/a'].map(writes)).to.deep.equal([
      true,
      true,
      true,
      true,
    ])
    expect(['notes', 'notes/../a.txt', '../notes/a', '/notes/a', 'x/notes/a', 'notesx/a'].map(writes)).to.not.include(
      true,
    )
    expect(allows('Write(*)', 'Write', { path: '../outside' })).to.equal(false)
    expect(allows('Write(*)', 'Write', { path: '..hidden/a' })).to.equal(true)
  })

  it('a pattern for commands allows no second command, redirection or substitution', () => {
    const runs = (command: string) => allows('Bash(git log*)', 'Bash', { command })
    expect(['git log', 'git log -3'].map(runs)).to.deep.equal([true, true])
    expect(
      [
        'git log; rm x',
        'git log && x',
        'git log | sh',
        'git log > f',
        'git log $(x)',
        'git log `x`',
        'git log\nrm x',
      ].map(runs),
    ).to.not.include(true)
    expect(allows('Bash(a | b)', 'Bash', { command: 'a | b' })).to.equal(true)
  })

  it('a rule for addresses compares scheme, host and path apart', () => {
    const fetches = (url: string) => allows('WebFetch(https://*.example.com/docs/*)', 'WebFetch', { url })
    expect(fetches('https://api.example.com/docs/a?b')).to.equal(true)
    expect(
      [
        'http://api.example.com/docs/a',
        'https://evil.com/x.example.com/docs/a',
        'https://a.example.com@evil.com/docs/',
        'https://u:p@a.example.com/docs/a',
        'x',
      ].map(fetches),
    ).to.not.include(true)
  })

  it('a rule with brackets allows no call of which it cannot be known what it acts on', () => {
    expect(allows('Tool(*)', 'Tool', { other: 'a' })).to.equal(false)
  })

  it('what is no rule is refused', () => {
    for (const text of ['', 'Write(', 'Write()', 'a b(c)'])
      expect(() => parseRule(text), text).to.throw(CliError, 'is not a rule')
  })
})
