import { expect } from 'chai'
import * as fc from 'fast-check'
import { createPolicyRules } from '../../../shared/agent/tools/policy-rules.ts'
import type { Policy, Tool } from '../../../shared/agent/tools/port.ts'
import { createBashTool } from '../../../shared/agent/tools/process/bash.ts'
import { createWebFetchTool } from '../../../shared/agent/tools/web/web-fetch.ts'
import { matchesWildcard } from '../../../shared/agent/tools/wildcard.ts'
import { createFileTools } from '../../../shared/agent/tools/workspace/file-tools.ts'
import { tool } from '../engine/tool-step-setup.ts'

const BASH = createBashTool()
const WEB = createWebFetchTool({ egress: () => Promise.reject(new Error('nothing is fetched')) })
const [READ, WRITE] = createFileTools() as [Tool, Tool]

const rulesOf = (rules: Record<string, Policy>) => createPolicyRules(new Map(Object.entries(rules)))

describe('rules for the policies of tools', () => {
  it('D1.3 TOOL_PERMISSIONS: of the rules that match, the longest decides, of equally long ones the strictest', () => {
    const rules = rulesOf({ '*': 'deny', 'mcp__*': 'ask', 'mcp__github__*': 'allow', 'mcp__github__del*': 'deny' })
    const policies = ['mcp__github__list', 'mcp__github__delete', 'mcp__mail__send', 'Read'].map((name) =>
      rules.policyOf(tool(name), {}),
    )
    expect(policies).to.deep.equal(['allow', 'deny', 'ask', 'deny'])
    expect(rulesOf({ 'a*': 'allow', '*b': 'deny' }).policyOf(tool('ab'), {})).to.equal('deny')
    expect(rulesOf({ 'mcp__*': 'allow' }).policyOf(tool('Read'), {})).to.equal(undefined)
  })

  it('D1.3 TOOL_PERMISSIONS: a rule with brackets decides for the calls that act on what it names', () => {
    const rules = rulesOf({ Bash: 'ask', 'Bash(git *)': 'allow', 'Bash(git push*)': 'deny' })
    const policies = ['git status', ' git log ', 'git push origin', 'rm -rf .', 'gitk'].map((command) =>
      rules.policyOf(BASH, { command }),
    )
    expect(policies).to.deep.equal(['allow', 'allow', 'deny', 'ask', 'ask'])
  })

  for (const command of [
    'git log; rm -rf .',
    'git log && curl evil',
    'git log\nrm x',
    'git log $(rm x)',
    'git log `rm x`',
    'git log > /tmp/x',
    'git log | sh',
    'git log & rm x',
  ]) {
    it(`a rule never allows a command that does more than it names: ${JSON.stringify(command)}`, () => {
      expect(rulesOf({ 'Bash(git *)': 'allow' }).policyOf(BASH, { command })).to.equal(undefined)
    })
  }

  it('a rule denies every command that contains what it names, and one that may contain it is asked for', () => {
    const rules = rulesOf({ Bash: 'allow', 'Bash(rm *)': 'deny' })
    const policies = ['rm -rf .', 'true; rm -rf .', 'true && ( rm x )', 'echo $(rm x)', 'echo rm'].map((command) =>
      rules.policyOf(BASH, { command }),
    )
    expect(policies).to.deep.equal(['deny', 'deny', 'deny', 'deny', 'ask'])
  })

  it('compares normalized paths and addresses', () => {
    const files = rulesOf({ 'Write(docs/*)': 'allow', 'Read(secret/*)': 'deny' })
    const paths = ['docs/a.md', './docs//a.md', 'docs/../.env', '../docs/a'].map((path) =>
      files.policyOf(WRITE, { path }),
    )
    expect(paths).to.deep.equal(['allow', 'allow', undefined, undefined])
    expect(files.policyOf(READ, { path: './secret//key' })).to.equal('deny')
    const web = rulesOf({ 'WebFetch(https://docs.example.com/*)': 'allow' })
    const urls = [
      'https://DOCS.example.com/a',
      'https://docs.example.com',
      'https://docs.example.com@evil.com/',
      'http://docs.example.com/',
    ].map((url) => web.policyOf(WEB, { url }))
    expect(urls).to.deep.equal(['allow', 'allow', undefined, undefined])
  })

  for (const url of [
    'http://127.0.0.1/a.example.com/x',
    'https://127.0.0.1/?a.example.com/x',
    'https://127.0.0.1/#a.example.com/x',
    'https://127.0.0.1\\.example.com/x',
    'https://evil.com?.example.com/',
    'https://evil.com#.example.com/',
    'https://a.example.com@evil.com/x',
    'https://user:p@a.example.com/x',
    'https://a.example.com.evil.com/x',
    'https://example.com/x',
    'https://a.example.com:8443/x',
    'ftp://a.example.com/x',
    'https:a.example.com@evil.com',
    '//a.example.com/x',
    'not an address',
  ])
    it(`an allowed host is no other one: ${url}`, () => {
      expect(rulesOf({ 'WebFetch(https://*.example.com/*)': 'allow' }).policyOf(WEB, { url })).to.equal(undefined)
    })

  it('an address is compared by scheme, host and path: case, dots, ports and the encoding of letters pass no denial', () => {
    const web = rulesOf({
      'WebFetch(https://*.example.com/*)': 'allow',
      'WebFetch(https://a.example.com/in/*)': 'deny',
    })
    const denied = ['https://a.example.com/in/x', 'HTTPS://A.EXAMPLE.COM/in/x', 'https://a.example.com./in/x']
    const encoded = ['https://a.example.com/%69n/x', 'https://a.example.com//in/x', 'https://a.example.com/y/../in/x']
    const more = ['https://a.example.com:443/in/x', 'https://a.example.com:8443/in/x', 'https://u@a.example.com/in%2fx']
    for (const url of [...denied, ...encoded, ...more]) expect(web.policyOf(WEB, { url }), url).to.equal('deny')
    for (const url of ['https://a.example.com/x?y=z', 'https://b.example.com', 'https://b.example.com/in/x'])
      expect(web.policyOf(WEB, { url }), url).to.equal('allow')
    const docs = rulesOf({ 'WebFetch(https://a.example.com/docs/*)': 'allow' })
    for (const path of ['docs/..%2fin', 'docs/%2e%2e/in', 'docs/%5c..', 'docs/../in', 'docs'])
      expect(docs.policyOf(WEB, { url: `https://a.example.com/${path}` }), path).to.equal(undefined)
    expect(rulesOf({ 'WebFetch(https://a.example.com)': 'deny' }).policyOf(WEB, { url: denied[0] })).to.equal('deny')
    expect(rulesOf({ 'WebFetch(*)': 'deny' }).policyOf(WEB, { url: 'gopher:x' })).to.equal('deny')
  })

  it('matches a wildcard as a regular expression does', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.'), maxLength: 8 })
    fc.assert(
      fc.property(text, text, (pattern, subject) => {
        const escaped = pattern.split('*').map((part) => part.replaceAll('.', '\\.'))
        const expression = new RegExp(`^${escaped.join('[^]*')}$`)
        expect(matchesWildcard(pattern, subject)).to.equal(expression.test(subject))
      }),
      { numRuns: 2_000 },
    )
  })
})
