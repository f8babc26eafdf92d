import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A key and a certificate of its own for `localhost`, for as long as a test takes. */
export function selfSigned(): { key: string; cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(identifier('2a8648ce3d040302'))
  const name = sequence(der(0x31, sequence(identifier('550403'), der(0x0c, Buffer.from('localhost')))))
  const valid = sequence(time(Date.now() - 3_600_000), time(Date.now() + 86_400_000))
  const authority = sequence(identifier('551d13'), der(0x01, Buffer.from([0xff])), der(0x04, sequence(der(0x01, Buffer.from([0xff])))))
  const hosts = sequence(identifier('551d11'), der(0x04, sequence(der(0x82, Buffer.from('localhost')))))
  const told = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])), algorithm, name, valid, name,
    publicKey.export({ type: 'spki', format: 'der' }), der(0xa3, sequence(authority, hosts)),
  )
  const certificate = sequence(told, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', told, privateKey)])))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  }
}

function der(tag: number, contents: Buffer): Buffer {
  const { length } = contents
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), contents])
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

function identifier(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

function time(at: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(at).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`))
}
