import { SPELLINGS } from '../../platform/net/egress-spellings.ts'

/** More spellings of addresses that are not on the public internet. `PORT` stands for the listener's port. */
const MORE = `
http://127.000.000.001:PORT/
http://0x7F.0x00.0x00.0x01:PORT/
http://0X7F000001:PORT/
http://0177.0.0.01:PORT/
http://127.0x1:PORT/
http://127.1.:PORT/
http://2130706433.:PORT/
http://127.0.0.1%2e:PORT/
http://127%2E0%2E0%2E1:PORT/
http://127.0.0.\u{1D7D9}:PORT/
http://127.0.0\u00AD.1:PORT/
http://\u200B127.0.0.1:PORT/
http://127.0.0.1:PORT/?url=https://example.com/
http://127.0.0.1:PORT/#https://example.com/
https:127.0.0.1:PORT/
https:/127.0.0.1:PORT/
http:\\/127.0.0.1:PORT/
http://@127.0.0.1:PORT/
http://:@127.0.0.1:PORT/
http://%6c%6f%63%61%6c%68%6f%73%74:PORT/
http://lOcAlHoSt:PORT/
http://localhost\u3002:PORT/
http://sub.localhost.:PORT/
http://localhost.localdomain:PORT/
http://ip6-localhost:PORT/
http://[0::1]:PORT/
http://[::0001]:PORT/
http://[::1]:PORT/..//
http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/
http://[::ffff:7f00:0001]:PORT/
http://[::ffff:0x7f.1]:PORT/
http://[::ffff:0:7f00:1]:PORT/
http://[64:ff9b:1::7f00:1]:PORT/
http://[2002:7f00:0001::1]:PORT/
http://[fe80::5efe:7f00:1]:PORT/
http://[::1%25lo]:PORT/
http://[fd00::1]:PORT/
http://[fd20:ce::254]:PORT/
http://100.100.100.200:PORT/
http://168.63.129.16:22/
http://169.254.170.2:PORT/v2/credentials/
http://127.0.0.1:22/
blob:http://127.0.0.1:PORT/x
jar:http://127.0.0.1:PORT/!/
unix:/var/run/docker.sock
http+unix://%2Fvar%2Frun%2Fdocker.sock/
`
  .trim()
  .split('\n')

/** The spellings of private addresses, each once. */
export const PRIVATE_SPELLINGS: readonly string[] = [...new Set([...SPELLINGS, ...MORE])]

/** Spellings of the addresses at which clouds give out credentials of the machine. They are never allowed. */
export const METADATA_SPELLINGS: readonly string[] = `
http://169.254.169.254/latest/meta-data/
http://169.254.169.254:80/
https://169.254.169.254/
http://169.254.169.254./
http://169.254.43518/
http://0xa9fea9fe/
http://0xA9.0xFE.0xA9.0xFE/
http://2852039166/
http://0251.0376.0251.0376/
http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/
http://[::ffff:169.254.169.254]/
http://[::ffff:a9fe:a9fe]/
http://[0:0:0:0:0:ffff:a9fe:a9fe]/
http://[::169.254.169.254]/
http://[::ffff:0:a9fe:a9fe]/
http://[64:ff9b::169.254.169.254]/
http://[64:ff9b::a9fe:a9fe]/
http://[64:ff9b:1::a9fe:a9fe]/
http://[2002:a9fe:a9fe::]/
http://[2002:a9fe:a9fe::1]/
http://[fe80::a9fe:a9fe]/
http://[fd00:ec2::254]/
http://[FD00:0EC2:0:0:0:0:0:0254]/
http://[fd00:ec2::23]/
http://[fd20:ce::254]/
http://169.254.170.2/v2/credentials/
http://169.254.170.23/
http://100.100.100.200/
http://[::ffff:100.100.100.200]/
http://[64:ff9b::6464:64c8]/
http://192.0.0.192/
http://168.63.129.16/
http://[::ffff:168.63.129.16]/
`
  .trim()
  .split('\n')
