import { expect } from 'chai'
import { createToolNames } from '../../../../shared/agent/tools/mcp/tool-names.ts'

describe('the names of MCP tools', () => {
  it('D5.1: are mcp__<server>__<tool>, also when a name of the server or the tool has underscores', () => {
    const nameOf = createToolNames(['one', 'my_server', 'my server.2'])
    expect(nameOf('one', '_hidden')).to.equal('mcp__one___hidden')
    expect(nameOf('my_server', 'do_it')).to.equal('mcp__my_server__do_it')
    expect(nameOf('my server.2', 'echo')).to.equal('mcp__my_server_2__echo')
  })

  it('no server can have the name of a tool of another one, whichever of them can be reached', () => {
    for (const [servers, one, other] of [
      [
        ['a', 'a__b'],
        ['a', 'b__delete'],
        ['a__b', 'delete'],
      ],
      [
        ['my server', 'my_server'],
        ['my server', 'x'],
        ['my_server', 'x'],
      ],
      [
        ['a', 'a_'],
        ['a', '__x'],
        ['a_', '_x'],
      ],
    ] as const) {
      const names = (order: readonly (readonly [string, string])[]) => {
        const nameOf = createToolNames(servers)
        return new Map(order.map((each) => [each[0], nameOf(...each)]))
      }
      const [first, second] = [names([one, other]), names([other, one])]
      expect([...first].toSorted(), servers.join()).to.deep.equal([...second].toSorted())
      expect(new Set(first.values()).size).to.equal(2)
    }
  })

  it('a tool keeps its name, and a server that renames its tools without end has the first ones forgotten', () => {
    const nameOf = createToolNames(['s', 'other'])
    const twins = ['a.b', 'a_b'].map((tool) => nameOf('s', tool))
    expect(twins[0]).to.equal('mcp__s__a_b')
    expect(twins[1]).to.match(/^mcp__s__a_b_[0-9a-f]{8}$/)
    for (let i = 0; i < 900; i++) nameOf('s', `t${i}`)
    for (let i = 0; i < 5_000; i++) nameOf('other', `t${i}`)
    expect(['a.b', 'a_b'].map((tool) => nameOf('s', tool))).to.deep.equal(twins)
    for (let i = 0; i < 1_000; i++) nameOf('s', `u${i}`)
    expect(nameOf('s', 'a_b')).to.equal('mcp__s__a_b')
  })

  it('a long name is cut and ends with a hash, and begins with its own server alone', () => {
    const servers = ['x'.repeat(60), `${'x'.repeat(60)}y`]
    const nameOf = createToolNames(servers)
    const names = servers.map((server) => nameOf(server, 't'.repeat(80)))
    expect(names.map((name) => name.length)).to.deep.equal([64, 64])
    expect(new Set(names.map((name) => name.split('__')[1])).size).to.equal(2)
  })
})
