import { Socket } from 'node:net'

/**
 * Loaded into a process under test: its connections to each port in `ports` of its address go to the port of a proxy instead. A Redis
 * Cluster tells its clients the addresses of its nodes, so no setting leads them through a proxy. Not in the environment, which some processes hide.
 */
const ports = new Map(JSON.parse(new URL(import.meta.url).searchParams.get('ports') ?? '[]') as [number, number][])

if (ports.size > 0) {
  const { connect } = Socket.prototype
  // `net.connect` passes its arguments on as one array, with the options first.
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    const [options] = (Array.isArray(args[0]) ? args[0] : args) as [{ port?: number | string }]
    const port = ports.get(Number(options?.port))
    if (port !== undefined) options.port = port
    return Reflect.apply(connect, this, args) as Socket
  }
}
