import { expect } from 'chai'
import { check, type Files, X } from './check-tree.ts'

const use = (path: string) => `import { x } from '${path}'\nx()\n`

describe('the import table', () => {
  const allowed: [string, Files][] = [
    [
      'a domain file imports kernel, ports and its own folder',
      {
        'shared/errors.ts': X,
        'shared/tools/port.ts': `${use('../errors.ts')}export type Tool = string\n`,
        'shared/tools/clip.ts': X,
        'shared/tools/workspace/files.ts': `${use('../clip.ts')}import type { Tool } from '../port.ts'\nconst t: Tool = ''\n`,
      },
    ],
    [
      'the engine imports stores and providers, and the customers import the engine',
      {
        'shared/store/ledger.ts': X,
        'shared/engine/run.ts': use('../store/ledger.ts') + X.replace('x', 'run'),
        'shared/customers/line.ts': `import { run } from '../engine/run.ts'\nrun()\n`,
      },
    ],
    [
      'an adapter imports its own other files, the domain files of its subject, and its package',
      {
        'shared/broker/journal/frames.ts': X,
        'shared/broker/redis-link.ts': `import { Redis } from 'ioredis'\n${X}Redis\n`,
        'shared/broker/relay/redis-node.ts': `import { x as y } from '../redis-link.ts'\n${use('../journal/frames.ts')}y()\n`,
      },
    ],
    [
      'a root imports adapters, services and `process`',
      {
        'shared/broker/memory.ts': X,
        'services/gateway/app.ts': X.replace('x', 'app'),
        'services/wiring/process.ts': `${use('../../shared/broker/memory.ts')}import { app } from '../gateway/app.ts'\napp(process.env)\n`,
      },
    ],
    [
      'tests and scripts import anything',
      {
        'services/gateway/app.ts': X,
        'test/gateway/app.test.ts': `import { expect } from 'chai'\n${use('../../services/gateway/app.ts')}expect(process)\n`,
      },
    ],
    [
      'a listed lazy import, and a file that is not TypeScript',
      {
        'services/ops/app.ts': X,
        'services/ops/open-ops.ts': `require('../../package.json')\nimport('./app.ts').then(({ x }) => x())\n`,
      },
    ],
    [
      '`process` as the name of a property or of a parameter, and `fetch` as a type',
      {
        'shared/tools/a.ts': `const a = (process: { fetch(): void }) => process.fetch()\na({ fetch() {} })\ntype F = typeof fetch\ntype G = typeof globalThis.fetch\nconst f: F | G = a\nf\n`,
      },
    ],
  ]
  for (const [rule, files] of allowed) {
    it(`allowed: ${rule}`, async () => expect(await check(files)).to.deep.equal([]))
  }

  const refused: [string, Files, string | RegExp][] = [
    [
      'the kernel imports a port',
      { 'shared/store/port.ts': X, 'shared/ids.ts': use('./store/port.ts') },
      'shared/ids.ts:1 kernel files may not import port files (shared/store/port.ts)',
    ],
    [
      'a port imports another port',
      { 'shared/store/port.ts': X, 'shared/tools/port.ts': use('../store/port.ts') },
      'shared/tools/port.ts:1 shared/tools may not import its neighbour shared/store/port.ts',
    ],
    [
      'a store imports the engine',
      { 'shared/engine/run.ts': X, 'shared/store/ledger.ts': use('../engine/run.ts') },
      'shared/store/ledger.ts:1 shared/store may not import its neighbour shared/engine/run.ts',
    ],
    [
      'a domain file imports an adapter',
      { 'shared/broker/memory.ts': X, 'shared/broker/ring.ts': use('./memory.ts') },
      'shared/broker/ring.ts:1 domain files may not import adapter files (shared/broker/memory.ts)',
    ],
    [
      'an adapter imports another adapter',
      { 'shared/store/mongo/mongo.ts': X, 'shared/store/sqlite/sqlite.ts': use('../mongo/mongo.ts') },
      /^shared\/store\/sqlite\/sqlite.ts:1 shared\/store\/sqlite may not import its neighbour/,
    ],
    [
      'a service imports an adapter',
      { 'shared/store/sqlite/sqlite.ts': X, 'services/gateway/app.ts': use('../../shared/store/sqlite/sqlite.ts') },
      'services/gateway/app.ts:1 service files may not import adapter files (shared/store/sqlite/sqlite.ts)',
    ],
    [
      'a service imports its sibling',
      { 'services/worker/run.ts': X, 'services/gateway/app.ts': use('../worker/run.ts') },
      'services/gateway/app.ts:1 services/gateway may not import its neighbour services/worker/run.ts',
    ],
    [
      'a service imports a root',
      { 'services/worker/main.ts': X, 'services/worker/run.ts': use('./main.ts') },
      /:1 service files may not import root files/,
    ],
    [
      'shared code imports a service',
      { 'services/worker/run.ts': X, 'shared/engine/run.ts': use('../../services/worker/run.ts') },
      /:1 domain files may not import service files/,
    ],
    [
      'the product imports a test',
      { 'test/support/fake.ts': X, 'shared/ids.ts': use('../test/support/fake.ts') },
      /:1 kernel files may not import test files/,
    ],
    [
      'a type counts as an import',
      {
        'services/worker/run.ts': 'export type T = 1',
        'services/gateway/app.ts': `import type { T } from '../worker/run.ts'\nconst t: T = 1\n`,
      },
      /:1 services\/gateway may not import its neighbour/,
    ],
    [
      'typeof import() counts as an import',
      {
        'services/worker/run.ts': X,
        'services/gateway/app.ts': `const t = 1 as unknown as typeof import('../worker/run.ts')\nt\n`,
      },
      /:1 services\/gateway may not import its neighbour/,
    ],
    [
      "a thread's entry file counts as an import",
      {
        'services/worker/thread.ts': '1',
        'services/gateway/app.ts': `\nnew Worker(new URL('../worker/thread.ts', import.meta.url))`,
      },
      /app.ts:2 services\/gateway may not import its neighbour/,
    ],
    [
      'express outside the gateway',
      { 'services/worker/run.ts': `import express from 'express'\nexpress()` },
      'services/worker/run.ts:1 express is for services/gateway/**, services/http/**, services/ops/** only',
    ],
    [
      'a file of a package that has a row',
      { 'shared/ids.ts': `import 'winston/lib/winston.js'` },
      'shared/ids.ts:1 winston is for shared/log.ts only',
    ],
    [
      'a scoped package in another adapter',
      { 'shared/providers/demo/demo.ts': `import '@ai-sdk/openai'` },
      /:1 @ai-sdk\/openai is for shared\/providers\/ai-sdk/,
    ],
    [
      'import.meta.resolve of a package that has a row',
      { 'shared/ids.ts': `import.meta.resolve('express')` },
      /:1 express is for/,
    ],
    [
      'a package that no row names',
      { 'shared/ids.ts': `import { nanoid } from 'nanoid'\nnanoid()` },
      'shared/ids.ts:1 nanoid is in no row of the import table',
    ],
    [
      'process outside a root',
      { 'shared/log.ts': 'const a = {\n  b: process.env,\n}\na' },
      /^shared\/log.ts:2 the global process is for services\/\*\/main.ts, /,
    ],
    [
      'process as a shorthand, or of globalThis',
      { 'shared/log.ts': 'const a = { process }\nglobalThis.process\na' },
      /log.ts:1 the global process/,
    ],
    [
      'node:process outside a root',
      { 'shared/log.ts': `import { env } from 'node:process'\nenv` },
      /:1 node:process is for/,
    ],
    [
      'fetch outside the egress',
      { 'shared/tools/web-fetch.ts': `fetch('http://x')` },
      /:1 the global fetch is for shared\/net\/egress/,
    ],
    [
      'a dynamic import that is not listed',
      { 'services/gateway/app.ts': `import('express')` },
      `services/gateway/app.ts:1 import('express') is not among the lazy imports of the table`,
    ],
    ['an index file', { 'shared/tools/index.ts': '1' }, /^shared\/tools\/index.ts:1 index files are barrels/],
    [
      'export *',
      { 'shared/a.ts': X, 'shared/b.ts': `export * from './a.ts'` },
      /^shared\/b.ts:1 `export \*` is a barrel/,
    ],
  ]
  for (const [rule, files, violation] of refused) {
    it(`refused: ${rule}`, async () => {
      const [first, ...rest] = await check(files)
      if (typeof violation === 'string') expect(first).to.equal(violation)
      else expect(first).to.match(violation)
      expect(rest.length).to.be.below(2)
    })
  }
})
