// Tests registry.ts and usable-tools.ts: the tools that are offered, and those that are left out.

import { expect } from 'chai'
import { type Policy, succeed, type Tool } from '../../../shared/agent/tools/port.ts'
import { createBashTool } from '../../../shared/agent/tools/process/bash.ts'
import { createToolRegistry } from '../../../shared/agent/tools/registry.ts'
import { createTodoTool } from '../../../shared/agent/tools/todo.ts'
import { createWebFetchTool } from '../../../shared/agent/tools/web/web-fetch.ts'
import { createFileTools } from '../../../shared/agent/tools/workspace/file-tools.ts'
import { createSearchTools } from '../../../shared/agent/tools/workspace/search-tools.ts'
import { AppError, tooMany } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../../shared/platform/schemas/checker.ts'
import type { SchemaChecker } from '../../../shared/platform/schemas/port.ts'

const tool = (name: string, inputSchema: JsonObject = { type: 'object' }): Tool => ({
  name,
  description: name,
  inputSchema,
  defaultPolicy: 'ask',
  describe: () => name,
  run: async () => succeed(name),
})

const builtIn = () => [
  ...createFileTools(),
  ...createSearchTools(),
  createWebFetchTool({ egress: () => expect.fail('opened') }),
  createTodoTool(),
  createBashTool(),
]

const checkers = createSchemaCheckers()
const schemas = checkers.of(DEFAULT_TENANT)

const registryOf = (tools: readonly Tool[], permissions: Record<string, Policy> = {}) =>
  createToolRegistry({ tools, permissions: new Map(Object.entries(permissions)), schemas })

describe('tool registry', () => {
  after(() => checkers.close())

  it('D5.1: tools that change files, run commands or use the network ask; the others are allowed', async () => {
    const registry = await registryOf(builtIn())
    expect(Object.fromEntries(registry.tools.map(({ name }) => [name, registry.policyOf(name, {})]))).to.deep.equal({
      Read: 'allow',
      Write: 'ask',
      Edit: 'ask',
      Glob: 'allow',
      Grep: 'allow',
      WebFetch: 'ask',
      TodoWrite: 'allow',
      Bash: 'ask',
    })
  })

  it('D5.2: at most 128 tools are offered; the rest is named in a log line, and the built-in tools come first', async () => {
    const foreign = Array.from({ length: 150 }, (_, i) => tool(`mcp__a__t${i}`))
    const { tools, find, leftOut } = await registryOf([...foreign, ...builtIn()])
    expect(tools).to.have.length(128)
    expect(leftOut).to.deep.equal([
      'mcp__a__t120, mcp__a__t121, mcp__a__t122, mcp__a__t123, mcp__a__t124 and 25 more are left out: at most 128 tools are offered',
    ])
    expect(tools.slice(0, 8).map(({ name }) => name)).to.include.members(['Read', 'Bash'])
    expect(find('mcp__a__t149')).to.equal(undefined)
  })

  it('no schema of a tool is looked at for which there is no room, and the log does not grow with the tools that are left out', async () => {
    let checked = 0
    let areUsable = true
    const counting: SchemaChecker = {
      ...schemas,
      async findUnusable() {
        checked += 1
        return areUsable ? [] : [{ at: 0, problem: { path: '', message: 'is wrong' } }]
      },
    }
    const many = (count: number, server: string) =>
      Array.from({ length: count }, (_, i) => tool(`mcp__${server}__t${i}`))
    const registry = await createToolRegistry({ tools: many(100, 'a'), permissions: new Map(), schemas: counting })
    areUsable = false
    const leftOut = await registry.add(many(50, 'b'))
    expect([checked, registry.tools.length, leftOut.length]).to.deep.equal([150, 100, 11])
    expect(leftOut.at(-1)).to.equal('40 more tools are left out: their input schemas cannot be used')
    areUsable = true
    expect(await registry.add(many(100_000, 'c'))).to.deep.equal([
      'mcp__c__t28, mcp__c__t29, mcp__c__t30, mcp__c__t31, mcp__c__t32 and 99967 more are left out: at most 128 tools are offered',
    ])
    expect([checked, registry.tools.length]).to.deep.equal([178, 128])
  })

  it('the tools of a server with three schemas that are too expensive are not looked at any more; those of other servers are', async () => {
    const checked: string[] = []
    const slow: SchemaChecker = {
      ...schemas,
      async findUnusable([schema]) {
        const { title } = schema as { title: string }
        checked.push(title)
        return title.startsWith('evil') ? [{ at: 0, problem: { path: '', message: 'is slow' }, isSlow: true }] : []
      },
    }
    const toolsOf = (server: string) =>
      Array.from({ length: 5 }, (_, i) => ({ ...tool(`mcp__${server}__t${i}`, { title: `${server} ${i}` }), server }))
    const tools = [...toolsOf('evil'), ...toolsOf('good')]
    const registry = await createToolRegistry({ tools, permissions: new Map(), schemas: slow })
    expect(registry.tools.map(({ server }) => server)).to.deep.equal(Array(5).fill('good'))
    expect(checked.slice(0, 4)).to.deep.equal(['evil 0', 'evil 1', 'evil 2', 'good 0'])
    expect(registry.leftOut).to.have.length(4)
    expect(registry.leftOut[3]).to.equal(
      '2 more tools of the MCP server evil are left out: 3 of its input schemas are too expensive',
    )
  })

  it('D1.3: TOOL_PERMISSIONS replaces the policy of exactly the tools that it names', async () => {
    const registry = await registryOf([...builtIn(), tool('mcp__a__b')], {
      Write: 'allow',
      Read: 'deny',
      mcp__a__b: 'allow',
    })
    expect(['Write', 'Read', 'mcp__a__b', 'Edit'].map((name) => registry.policyOf(name, {}))).to.deep.equal([
      'allow',
      'deny',
      'allow',
      'ask',
    ])
  })

  it('D5.4: a tool that always asks asks under the policy allow, and stays denied under deny', async () => {
    const plan: Tool = { ...tool('Plan'), defaultPolicy: 'allow', alwaysAsks: true }
    const policyUnder = async (policy?: Policy) =>
      (await registryOf([plan], policy ? { Plan: policy } : {})).policyOf('Plan', {})
    expect(
      await Promise.all([undefined, 'allow', 'ask', 'deny'].map((policy) => policyUnder(policy as Policy))),
    ).to.deep.equal(['ask', 'ask', 'ask', 'deny'])
  })

  it('D1.3: TOOL_PERMISSIONS takes rules, and a rule that no tool can match is a problem', async () => {
    const registry = await registryOf([...builtIn(), tool('mcp__a__b')], {
      'mcp__a__*': 'allow',
      'Bash(git *)': 'allow',
    })
    expect(registry.policyOf('mcp__a__b', {})).to.equal('allow')
    expect([
      registry.policyOf('Bash', { command: 'git log' }),
      registry.policyOf('Bash', { command: 'ls' }),
    ]).to.deep.equal(['allow', 'ask'])
    expect(registry.problems).to.deep.equal([])
    const { problems } = await registryOf(builtIn(), {
      'Glob(*)': 'deny',
      'Wr*': 'deny',
      'X*': 'deny',
      'Bash(git': 'deny',
      'WebFetch(example.com)': 'deny',
    })
    expect(problems).to.have.length(4)
    expect(problems[0]).to.equal(
      'TOOL_PERMISSIONS: Glob(*) must be without brackets; only Read, Write, Edit, WebFetch, Bash take them.',
    )
    expect(problems.slice(1).map((problem) => /no tool (\S+)\./.exec(problem)?.[1])).to.deep.equal([
      'X*',
      'Bash(git',
      undefined,
    ])
    expect(problems[3]).to.equal(
      'TOOL_PERMISSIONS: WebFetch(example.com) must name a scheme and a host, such as WebFetch(https://docs.example.com/*).',
    )
  })

  it('the tool’s own check runs after its schema has accepted the input', async () => {
    const checked: JsonObject[] = []
    const strict: Tool = {
      ...tool('Strict', { type: 'object', required: ['n'] }),
      problemWith: (input) => {
        checked.push(input)
        return input['n'] === 1 ? undefined : 'n must be 1'
      },
    }
    const registry = await registryOf([strict])
    expect(await registry.problemWith('Strict', {})).to.equal('The input of Strict is wrong: /n is missing.')
    expect(checked).to.deep.equal([])
    expect(await registry.problemWith('Strict', { n: 2 })).to.equal('n must be 1')
    expect(await registry.problemWith('Strict', { n: 1 })).to.equal(undefined)
    expect(await registry.problemWith('Unknown', {})).to.equal('There is no tool Unknown.')
  })

  it('a schema that allows no further fields names the field that it refuses', async () => {
    const closed = tool('Closed', {
      type: 'object',
      properties: { inner: { type: 'object', properties: {}, additionalProperties: false } },
      additionalProperties: false,
    })
    const registry = await registryOf([closed])
    expect(await registry.problemWith('Closed', { extra: 1 })).to.equal(
      'The input of Closed is wrong: /extra is not allowed: the known properties are inner.',
    )
    expect(await registry.problemWith('Closed', { inner: { extra: 1 } })).to.equal(
      'The input of Closed is wrong: /inner/extra is not allowed: remove it.',
    )
    const choice = tool('Choice', { anyOf: [{ required: ['a'] }, { required: ['b'] }] })
    expect(await (await registryOf([choice])).problemWith('Choice', {})).to.equal(
      'The input of Choice is wrong: it must fit one of the 2 alternatives of "anyOf"; /a is missing; /b is missing.',
    )
  })

  it('an unknown tool is denied, also one named like a property of every JavaScript object', async () => {
    const registry = await registryOf(builtIn())
    for (const name of ['Nope', 'toString', 'constructor', '__proto__']) {
      expect([registry.policyOf(name, {}), registry.find(name)], name).to.deep.equal(['deny', undefined])
    }
  })

  it('a TOOL_PERMISSIONS entry for an unknown tool is a problem, unless D5.1 or an MCP server could define it', async () => {
    const permissions = { Raed: 'deny', Bash: 'deny', Agent: 'ask', mcp__away__x: 'allow', Read: 'ask' } as const
    const { problems } = await registryOf(createFileTools(), permissions)
    expect(problems).to.have.length(1)
    expect(problems[0]).to.match(/^TOOL_PERMISSIONS: there is no tool Raed\. The tools are Read, Write/)
  })

  it('keeps the order of the tools', async () => {
    const registry = await registryOf([tool('b'), tool('a')])
    expect(registry.tools.map(({ name }) => name)).to.deep.equal(['b', 'a'])
    expect(['a', 'b', 'c'].map((name) => registry.find(name)?.name)).to.deep.equal(['a', 'b', undefined])
  })

  it('every built-in schema compiles and describes each of its fields', async () => {
    const registry = await registryOf(builtIn())
    for (const { name, inputSchema, description } of registry.tools) {
      expect(await registry.problemWith(name, {}), name).to.match(
        new RegExp(`^The input of ${name} is wrong: /\\w+ is missing(; /\\w+ is missing)*\\.$`),
      )
      expect(description.length, name).to.be.above(20)
      for (const [field, schema] of Object.entries(inputSchema['properties'] as Record<string, JsonObject>)) {
        expect(schema['description'] ?? schema['items'], `${name}.${field}`).to.not.equal(undefined)
      }
    }
  })

  const WRONG: [string, JsonObject, string][] = [
    ['Read', { path: 5 }, '/path must be a string, not a number'],
    [
      'Read',
      { path: 'a', offset: 0, limit: 1.5 },
      '/offset must be at least 1, not 0; /limit must be an integer, not 1.5',
    ],
    ['Edit', { path: 'a', old_string: '', new_string: '' }, '/old_string must have at least 1 character'],
    [
      'TodoWrite',
      { todos: [{ content: 'x', status: 'done' }] },
      '/todos/0/status must be one of "pending", "in_progress", "completed"',
    ],
    ['TodoWrite', { todos: [{ status: 'pending' }] }, '/todos/0/content is missing'],
    ['Bash', { command: 'x', timeout_ms: 999_999_999 }, '/timeout_ms must be at most 600000, not 999999999'],
  ]
  for (const [name, input, words] of WRONG) {
    it(`tells the model what is wrong: ${words}`, async () => {
      expect(await (await registryOf(builtIn())).problemWith(name, input)).to.equal(
        `The input of ${name} is wrong: ${words}.`,
      )
    })
  }

  it('a field that is not in the schema is ignored', async () => {
    expect(await (await registryOf(builtIn())).problemWith('Bash', { command: 'ls', description: 'lists' })).to.equal(
      undefined,
    )
  })

  it('an MCP tool whose schema cannot be used is left out and reported; the others stay', async () => {
    const { tools, leftOut } = await registryOf([
      tool('mcp__s__good', {
        type: 'object',
        properties: { n: { $ref: '#/$defs/n' } },
        $defs: { n: { type: 'number' } },
      }),
      tool('mcp__s__type', { type: 'strin' }),
      tool('mcp__s__pattern', { type: 'object', properties: { a: { type: 'string', pattern: '(' } } }),
      tool('mcp__s__remote', { $ref: 'https://example.com/schema' }),
      tool('mcp__s__endless', { $ref: '#' }),
      tool('mcp__s__lookahead', { type: 'object', properties: { a: { pattern: '(?=a)' } } }),
      tool('mcp__s__last'),
    ])
    expect(tools.map(({ name }) => name)).to.deep.equal(['mcp__s__good', 'mcp__s__last'])
    expect(leftOut.map((message) => message.split(' ')[0])).to.deep.equal([
      'mcp__s__type',
      'mcp__s__pattern',
      'mcp__s__remote',
      'mcp__s__endless',
      'mcp__s__lookahead',
    ])
    expect(leftOut[0]).to.match(
      /^mcp__s__type is left out: its input schema cannot be used \(\/type must be one of array, /,
    )
  })

  it('accepts schemas of draft-07, schemas with the same id, and recursive schemas', async () => {
    const draft07 = { $schema: 'http://json-schema.org/draft-07/schema#', $id: 'same', type: 'object' }
    const registry = await registryOf([
      tool('mcp__a__x', { ...draft07, properties: { t: { type: 'array', items: [{ type: 'string' }] } } }),
      tool('mcp__b__x', { ...draft07, required: ['q'] }),
      tool('mcp__c__x', { $id: 'same', type: 'object', properties: { child: { $ref: '#' } } }),
    ])
    expect(registry.leftOut).to.deep.equal([])
    expect(await registry.problemWith('mcp__a__x', { t: [1] })).to.include('/t/0 must be a string')
    expect(await registry.problemWith('mcp__b__x', {})).to.include('/q is missing')
    expect(await registry.problemWith('mcp__c__x', { child: { child: 5 } })).to.include(
      '/child/child must be an object',
    )
  })

  it('reads a schema without a draft as draft 2020-12, and compiles it once', async () => {
    let reads = 0
    const schema = { type: 'object', properties: { pair: { type: 'array', prefixItems: [{ type: 'string' }] } } }
    const counted: Tool = Object.defineProperty(tool('Pair'), 'inputSchema', {
      get: () => {
        reads += 1
        return schema
      },
    })
    const registry = await registryOf([counted])
    expect(await registry.problemWith('Pair', { pair: [1] })).to.include('/pair/0 must be a string')
    const readsOfFirst = reads
    expect(await registry.problemWith('Pair', { pair: ['a'] })).to.equal(undefined)
    expect(reads).to.equal(readsOfFirst)
  })

  it('an input that is nested deeper than the stack is refused without an exception', async () => {
    const registry = await registryOf([tool('mcp__c__x', { type: 'object', properties: { c: { $ref: '#' } } })])
    let input: JsonObject = {}
    for (let depth = 0; depth < 200_000; depth += 1) input = { c: input }
    expect(await registry.problemWith('mcp__c__x', input)).to.be.a('string')
  })

  it('D5.2: an MCP tool gets fields that its schema does not name: its server decides', async () => {
    const properties = { a: { type: 'object', properties: { b: { type: 'integer' } }, additionalProperties: false } }
    const inputSchema = { type: 'object', properties, additionalProperties: false }
    const { problemWith } = await createToolRegistry({
      tools: [{ ...tool('mcp__s__closed'), inputSchema }],
      permissions: new Map(),
      schemas,
    })
    expect(await problemWith('mcp__s__closed', { a: { b: 1, c: 2 }, d: 3 })).to.equal(undefined)
    expect(await problemWith('mcp__s__closed', { a: { b: '1' } })).to.match(/must be/)
  })

  it('D5.1: a tool that a rule denies is not offered, but found: the model that calls it reads why', async () => {
    const permissions = new Map<string, Policy>([
      ['mcp__s__*', 'deny'],
      ['mcp__s__kept', 'ask'],
      ['Bash(rm *)', 'deny'],
    ])
    const tools = ['mcp__s__gone', 'mcp__s__kept', 'Bash'].map((name) => tool(name))
    const registry = await createToolRegistry({ tools, permissions, schemas })
    expect(registry.tools.map(({ name }) => name)).to.have.members(['Bash', 'mcp__s__kept'])
    expect([registry.find('mcp__s__gone')?.name, registry.policyOf('mcp__s__gone', {})]).to.deep.equal([
      'mcp__s__gone',
      'deny',
    ])
    registry.remove(['mcp__s__gone'])
    expect(registry.tools).to.have.length(2)
  })

  it('the pattern of an MCP tool that would backtrack without end is answered at once', async () => {
    const input = { text: `${'a'.repeat(50)}!` }
    const registry = await registryOf([tool('mcp__s__x', { properties: { text: { pattern: '^(a+)+$' } } })])
    expect(await registry.problemWith('mcp__s__x', input)).to.include('/text must match the pattern ^(a+)+$')
  })

  it('the model is asked to try again when the input of an MCP tool cannot be checked now', async () => {
    const busy = {
      problemWith: async () => undefined,
      check: () => Promise.reject(new AppError('unavailable', 'busy')),
    }
    const registry = await createToolRegistry({
      tools: [tool('mcp__s__x')],
      permissions: new Map(),
      schemas: { ...schemas, ...busy },
    })
    const problem = await registry.problemWith('mcp__s__x', {})
    expect(problem).to.equal('The input of mcp__s__x is wrong: it cannot be checked now, try again later.')
  })

  it('an input waits while too many others are being checked: the model does not hear of it', async () => {
    let refusals = 2
    const check = async () => {
      if (refusals-- > 0) throw tooMany('too many', 1)
      return []
    }
    const parts = { tools: [tool('mcp__s__x')], permissions: new Map(), schemas: { ...schemas, check } }
    expect(await (await createToolRegistry(parts)).problemWith('mcp__s__x', {})).to.equal(undefined)
  })

  it('D5.2: tools of an MCP server can be added, replaced in their place and removed, up to 128 in all', async () => {
    const names = Array.from({ length: 127 }, (_, i) => `mcp__a__t${i}`)
    const registry = await registryOf(names.map((name) => tool(name)))
    const changed = tool('mcp__a__t1')
    expect(await registry.add([changed, tool('mcp__a__new'), tool('mcp__a__more')])).to.deep.equal([
      'mcp__a__more is left out: at most 128 tools are offered',
    ])
    expect(registry.tools[1]).to.equal(changed)
    expect(registry.find('mcp__a__t1')).to.equal(changed)
    registry.remove(['mcp__a__t0', 'mcp__a__unknown'])
    expect(registry.tools.map(({ name }) => name)).to.deep.equal([...names.slice(1), 'mcp__a__new'])
    expect(registry.find('mcp__a__t0')).to.equal(undefined)
  })

  it('throws when two tools have the same name', async () => {
    const refused = await registryOf([tool('a'), tool('a')]).catch((error: Error) => error.message)
    expect(refused).to.equal('two tools are named a')
    const registry = await registryOf([tool('a')])
    expect(await registry.add([tool('a')]).catch((error: Error) => error.message)).to.equal('two tools are named a')
  })
})
