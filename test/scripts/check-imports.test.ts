import { expect } from 'chai'
import { check, type Files, X } from './check-tree.ts'

const use = (path: string) => `import { x } from '${path}'\nx()\n`

describe('the import table', () => {
  const allowed: [string, Files][] = [
    [
      'a file imports its own room and the rooms before it',
      {
        'shared/kernel/errors.ts': X,
        'shared/agent/tools/port.ts': `${use('../../kernel/errors.ts')}export type Tool = string\n`,
        'shared/agent/tools/clip.ts': X,
        'shared/agent/tools/workspace/files.ts': `${use('../clip.ts')}import type { Tool } from '../port.ts'\nconst t: Tool = ''\n`,
      },
    ],
    [
      'what the tenants have imports what an agent is',
      {
        'shared/agent/providers/prices.ts': X,
        'shared/tenancy/limits/meter.ts': use('../../agent/providers/prices.ts'),
      },
    ],
    [
      'an adapter imports the files of its technology, and its package',
      {
        'shared/platform/redis/link.ts': `import { Redis } from 'ioredis'\n${X}Redis\n`,
        'shared/cluster/members/redis-members.ts': `import { x as y } from '../../platform/redis/link.ts'\n${X}y()\n`,
        'shared/cluster/redis-ports.ts': use('./members/redis-members.ts'),
      },
    ],
    [
      'a root imports adapters, services and `process`',
      {
        'shared/cluster/memory.ts': X,
        'services/gateway/app.ts': X.replace('x', 'app'),
        'services/wiring/process.ts': `${use('../../shared/cluster/memory.ts')}import { app } from '../gateway/app.ts'\napp(process.env)\n`,
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
        'shared/agent/tools/a.ts': `const a = (process: { fetch(): void }) => process.fetch()\na({ fetch() {} })\ntype F = typeof fetch\ntype G = typeof globalThis.fetch\nconst f: F | G = a\nf\n`,
      },
    ],
  ]
  for (const [rule, files] of allowed) {
    it(`allowed: ${rule}`, async () => expect(await check(files)).to.deep.equal([]))
  }

  const refused: [string, Files, string | RegExp][] = [
    [
      'the relay imports an adapter',
      {
        'shared/cluster/members/redis-members.ts': X,
        'shared/cluster/relay/worker.ts': use('../members/redis-members.ts'),
      },
      'shared/cluster/relay/worker.ts:1 only roots and the files of redis import shared/cluster/members/redis-members.ts',
    ],
    [
      'the kernel imports the platform',
      { 'shared/platform/store/port.ts': X, 'shared/kernel/ids.ts': use('../platform/store/port.ts') },
      'shared/kernel/ids.ts:1 kernel comes before platform/store in the house and may not import shared/platform/store/port.ts',
    ],
    [
      'a type of a later room is imported, also from a port',
      {
        'shared/work/queue/port.ts': 'export type Job = 1',
        'shared/platform/fairness/turns.ts': `import type { Job } from '../../work/queue/port.ts'\nconst j: Job = 1\nj\n`,
      },
      /^shared\/platform\/fairness\/turns.ts:1 platform\/fairness comes before work\/queue/,
    ],
    [
      'the store imports the engine',
      { 'shared/agent/engine/run.ts': X, 'shared/platform/store/append.ts': use('../../agent/engine/run.ts') },
      /^shared\/platform\/store\/append.ts:1 platform\/store comes before agent\/engine/,
    ],
    [
      'the cluster knows the agent',
      { 'shared/agent/engine/run.ts': X, 'shared/cluster/relay/worker.ts': use('../../agent/engine/run.ts') },
      'shared/cluster/relay/worker.ts:1 cluster/relay and agent/engine do not know each other: shared/agent/engine/run.ts',
    ],
    [
      'the agent knows the cluster',
      { 'shared/cluster/list-page.ts': X, 'shared/agent/engine/run.ts': use('../../cluster/list-page.ts') },
      /^shared\/agent\/engine\/run.ts:1 agent\/engine comes before cluster\/lists/,
    ],
    [
      'the client imports something of the product',
      { 'shared/kernel/ids.ts': X, 'shared/client/client.ts': use('../kernel/ids.ts') },
      /^shared\/client\/client.ts:1 client imports only shared\/platform\/api\/openapi.d.ts, not shared\/kernel\/ids.ts/,
    ],
    [
      'the client imports a module of Node',
      { 'shared/client/client.ts': `import { join } from 'node:path'\njoin('a')` },
      /^shared\/client\/client.ts:1 client imports only shared\/platform\/api\/openapi.d.ts, not node:path/,
    ],
    [
      'a process imports the client',
      { 'shared/client/client.ts': X, 'services/worker/run.ts': use('../../shared/client/client.ts') },
      /^services\/worker\/run.ts:1 only services\/\{cli,console\}\/\*\* imports client/,
    ],
    [
      'a part of a process gets the whole configuration',
      {
        'shared/platform/config/config.ts': 'export type Config = 1',
        'services/gateway/open-http.ts': `import type { Config } from '../../shared/platform/config/config.ts'\nconst c: Config = 1\nc\n`,
      },
      'services/gateway/open-http.ts:1 Config is for services/wiring/process.ts, shared/platform/config/groups.ts only',
    ],
    [
      'a file is in no room',
      { 'shared/kernel/a.ts': X, 'shared/other/b.ts': use('../kernel/a.ts') },
      'shared/other/b.ts:1 shared/other/b.ts has no room: add it to the table',
    ],
    [
      'a file that is no adapter imports one',
      { 'shared/work/queue/memory.ts': X, 'shared/work/plans/submit.ts': use('../queue/memory.ts') },
      'shared/work/plans/submit.ts:1 only roots and the files of memory import shared/work/queue/memory.ts',
    ],
    [
      'an adapter imports another adapter',
      { 'shared/platform/store/mongo/mongo.ts': X, 'shared/platform/store/sqlite/sqlite.ts': use('../mongo/mongo.ts') },
      /^shared\/platform\/store\/sqlite\/sqlite.ts:1 only roots and the files of mongo import/,
    ],
    [
      'a service imports an adapter',
      {
        'shared/platform/store/sqlite/sqlite.ts': X,
        'services/gateway/app.ts': use('../../shared/platform/store/sqlite/sqlite.ts'),
      },
      'services/gateway/app.ts:1 only roots and the files of sqlite import shared/platform/store/sqlite/sqlite.ts',
    ],
    [
      'a service imports its sibling',
      { 'services/gateway/app.ts': X, 'services/worker/run.ts': use('../gateway/app.ts') },
      /do not know each other/,
    ],
    [
      'a service imports a root',
      { 'services/worker/main.ts': X, 'services/worker/run.ts': use('./main.ts') },
      /:1 services\/worker comes before roots in the house/,
    ],
    [
      'shared code imports a service',
      { 'services/worker/run.ts': X, 'shared/agent/engine/run.ts': use('../../../services/worker/run.ts') },
      /:1 agent\/engine comes before services\/worker in the house/,
    ],
    [
      'the product imports a test',
      { 'test/support/fake.ts': X, 'shared/kernel/ids.ts': use('../../test/support/fake.ts') },
      /:1 the product may not import test\/support\/fake.ts/,
    ],
    [
      'a type counts as an import',
      {
        'services/gateway/run.ts': 'export type T = 1',
        'services/worker/app.ts': `import type { T } from '../gateway/run.ts'\nconst t: T = 1\n`,
      },
      /do not know each other/,
    ],
    [
      'typeof import() counts as an import',
      {
        'services/gateway/run.ts': X,
        'services/worker/app.ts': `const t = 1 as unknown as typeof import('../gateway/run.ts')\nt\n`,
      },
      /do not know each other/,
    ],
    [
      "a thread's entry file counts as an import",
      {
        'services/gateway/thread.ts': '1',
        'services/worker/app.ts': `\nnew Worker(new URL('../gateway/thread.ts', import.meta.url))`,
      },
      /app.ts:2 services\/worker and services\/gateway do not know each other/,
    ],
    [
      'express outside the gateway',
      { 'services/worker/run.ts': `import express from 'express'\nexpress()` },
      'services/worker/run.ts:1 express is for services/gateway/**, services/http/**, services/ops/** only',
    ],
    [
      'a file of a package that has a row',
      { 'shared/kernel/ids.ts': `import 'winston/lib/winston.js'` },
      'shared/kernel/ids.ts:1 winston is for shared/kernel/log.ts only',
    ],
    [
      'a scoped package in another adapter',
      { 'shared/agent/providers/demo/demo.ts': `import '@ai-sdk/openai'` },
      /:1 @ai-sdk\/openai is for shared\/agent\/providers\/ai-sdk/,
    ],
    [
      'import.meta.resolve of a package that has a row',
      { 'shared/kernel/ids.ts': `import.meta.resolve('express')` },
      /:1 express is for/,
    ],
    [
      'a package that no row names',
      { 'shared/kernel/ids.ts': `import { nanoid } from 'nanoid'\nnanoid()` },
      'shared/kernel/ids.ts:1 nanoid is in no row of the import table',
    ],
    [
      'process outside a root',
      { 'shared/kernel/log.ts': 'const a = {\n  b: process.env,\n}\na' },
      /^shared\/kernel\/log.ts:2 the global process is for services\/\*\/main.ts, /,
    ],
    [
      'process as a shorthand, or of globalThis',
      { 'shared/kernel/log.ts': 'const a = { process }\nglobalThis.process\na' },
      /log.ts:1 the global process/,
    ],
    [
      'node:process outside a root',
      { 'shared/kernel/log.ts': `import { env } from 'node:process'\nenv` },
      /:1 node:process is for/,
    ],
    [
      'fetch outside the egress',
      { 'shared/agent/tools/web-fetch.ts': `fetch('http://x')` },
      /:1 the global fetch is for shared\/platform\/net\/egress/,
    ],
    [
      'a dynamic import that is not listed',
      { 'services/gateway/app.ts': `import('express')` },
      `services/gateway/app.ts:1 import('express') is not among the lazy imports of the table`,
    ],
    [
      'an index file',
      { 'shared/agent/tools/index.ts': '1' },
      /^shared\/agent\/tools\/index.ts:1 index files are barrels/,
    ],
    [
      'export *',
      { 'shared/kernel/a.ts': X, 'shared/kernel/b.ts': `export * from './a.ts'` },
      /^shared\/kernel\/b.ts:1 `export \*` is a barrel/,
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
