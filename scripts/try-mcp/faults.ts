import { type FaultServers, LIMIT_MS, openFaultServers } from './fault-servers.ts'
import type { Installed } from './install.ts'
import { report } from './report.ts'
import {
  beginCall,
  type Call,
  type Caller,
  callTool,
  callWhenThere,
  openSession,
  type Trial,
  withProduct,
} from './trial.ts'

type Fault = {
  what: string
  /** The call that fails, and what it has to say. */
  call: Call
  says: RegExp
  /** The event of its run behind which the fault is made. */
  begins: 'tool_use' | 'tool_progress'
  make?: () => Promise<void>
  mend?: () => Promise<void>
  /** A call of another server. */
  other: Call
  /** A call of the same server, which succeeds when the fault is mended. */
  same: Call
  /** Whether it succeeds meanwhile, too. */
  livesOn?: boolean
  /** Whether the call fails by its time limit alone, so that others have been answered before. */
  lasts?: boolean
}

const WORK = 'trigger-long-running-operation'
const MAY_HAVE_RUN = 'the call may have been carried out'
const LATE = new RegExp(`did not answer within ${LIMIT_MS} ms; ${MAY_HAVE_RUN}`)
const ECHO: Call = ['fragile__echo', { message: 'hello' }]

const tooLarge = (limit: string) => new RegExp(`above the limit of ${limit}; ${MAY_HAVE_RUN}`)

/** All but the server that floods are unmodified. */
function stdioFaults({ signalFragile, bigFile }: FaultServers, files: Call): Fault[] {
  const busy: Call = [`fragile__${WORK}`, { duration: 60, steps: 60 }]
  const silent: Call = [`fragile__${WORK}`, { duration: 60, steps: 1 }]
  const flood: Call = ['flood__flood', {}]
  const fragile = { call: busy, begins: 'tool_progress', other: files, same: ECHO } as const
  const ended = new RegExp(`ended during the call; ${MAY_HAVE_RUN}`)
  return [
    { ...fragile, what: 'killed', make: () => signalFragile('SIGKILL'), says: ended },
    { ...fragile, what: 'a call hangs', call: silent, begins: 'tool_use', says: LATE, livesOn: true, lasts: true },
    {
      ...fragile,
      what: 'all of it hangs',
      make: () => signalFragile('SIGSTOP'),
      mend: () => signalFragile('SIGCONT'),
      says: LATE,
      lasts: true,
    },
    {
      what: 'floods stdout',
      call: flood,
      begins: 'tool_use',
      says: LATE,
      other: files,
      same: ['flood__echo', { text: 'hello' }],
      livesOn: true,
      lasts: true,
    },
    {
      what: '50 MB over stdio',
      call: ['files__read_text_file', { path: bigFile }],
      begins: 'tool_use',
      says: tooLarge('10 MB'),
      other: ECHO,
      same: files,
      livesOn: true,
    },
  ]
}

function httpFaults({ blobUrl, far, web }: FaultServers, files: Call): Fault[] {
  const echo: Call = ['far__echo', { message: 'hello' }]
  const says = new RegExp(MAY_HAVE_RUN)
  return [
    {
      what: '50 MB over HTTP',
      call: ['far__gzip-file-as-resource', { name: 'big.gz', data: blobUrl, outputType: 'resource' }],
      begins: 'tool_use',
      says: tooLarge('16 MB'),
      other: files,
      same: echo,
      livesOn: true,
    },
    {
      what: 'killed over HTTP',
      call: [`far__${WORK}`, { duration: 60, steps: 60 }],
      begins: 'tool_progress',
      make: () => far.kill(),
      mend: () => far.start(),
      says,
      other: files,
      same: echo,
    },
    {
      what: 'redeployed',
      call: ['web__before', { seconds: 60 }],
      begins: 'tool_progress',
      make: () => web.kill(),
      mend: () => web.start('after'),
      says,
      other: files,
      same: ['web__note', { text: 'hello' }],
    },
  ]
}

/** Makes one fault after the other in a call of one run, while four others, of two tenants, call the same server and another one. */
export async function tryFaults(place: Parameters<typeof withProduct>[0], installed: Installed): Promise<void> {
  const servers = await openFaultServers(installed, place.folder)
  const files: Call = ['files__list_directory', { path: place.folder }]
  try {
    await servers.start()
    await withProduct(place, servers.entries, async ({ product, callers: some, tenants }) => {
      const more = await Promise.all(tenants.map((headers) => openSession(product, headers)))
      const callers = [...some, ...more]
      const faults = [...stdioFaults(servers, files), ...httpFaults(servers, files)]
      await Promise.all(callers.map((caller) => untilAllAreThere({ product, caller, faults })))
      for (const fault of faults) await tryFault({ product, callers }, fault)
      await checkRedeployed({ product, callers })
    })
  } finally {
    await servers.close()
  }
}

type Trying = Pick<Trial, 'product' | 'callers'>

async function untilAllAreThere({
  product,
  caller,
  faults,
}: Pick<Trial, 'product'> & { caller: Caller; faults: Fault[] }) {
  for (const { same } of faults) await callWhenThere(product, caller, same)
}

async function tryFault({ product, callers }: Trying, fault: Fault): Promise<void> {
  const { what, other, same, livesOn = false, lasts = false } = fault
  const [broken, ...others] = callers
  if (!broken) return
  const call = await beginCall(product, broken, fault.call)
  await call.until(fault.begins)
  await fault.make?.()
  let hasFailed = false
  const fails = async () => {
    const answer = await call.answer()
    hasFailed = true
    return answer
  }
  const check = async (tool: Call, when: string) => {
    const begun = performance.now()
    const answers = await Promise.all(others.map((caller) => callTool(product, caller, tool)))
    const wrong = answers.find(({ isError }) => isError)?.output
    const isLate = lasts && hasFailed && when === 'meanwhile'
    const seen =
      wrong ?? `${isLate ? 'only behind its end' : 'answered'}, in ${Math.round(performance.now() - begun)} ms`
    report(wrong === undefined && !isLate, `${what}, ${others.length} other runs' ${tool[0]} ${when}: ${seen}`)
  }
  const meanwhile = async () => {
    for (const tool of livesOn ? [other, same] : [other]) await check(tool, 'meanwhile')
  }
  const [{ output, isError }] = await Promise.all([fails(), meanwhile()])
  report(isError && fault.says.test(output), `${what}, the call: ${output}`)
  await fault.mend?.()
  await check(same, 'afterwards')
}

/** Far below the minute in which each server is listed again anyway. */
const KNOWN_WITHIN_MS = 20_000

/** The tool that is gone is refused, and the one that is new can be called soon. */
async function checkRedeployed({ product, callers }: Trying): Promise<void> {
  const begun = performance.now()
  const gone = await Promise.all(callers.map((caller) => callTool(product, caller, ['web__before', {}])))
  report(
    gone.every(({ isError }) => isError),
    `redeployed, the tool that is gone: ${gone[0]?.output}`,
  )
  const news = await Promise.all(callers.map((caller) => callWhenThere(product, caller, ['web__after', {}])))
  const ms = Math.round(performance.now() - begun)
  const wrong = news.find(({ isError }) => isError)?.output
  report(wrong === undefined && ms < KNOWN_WITHIN_MS, `redeployed, the new tool: ${wrong ?? `answered after ${ms} ms`}`)
}
