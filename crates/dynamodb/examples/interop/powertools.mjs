// An idempotent function of Powertools for TypeScript: a call a line on standard input, its outcome on standard output.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// From where the library is installed, which is where this is run.
const require = createRequire(join(process.cwd(), 'index.js'));
const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
const { IdempotencyConfig, makeIdempotent } = require('@aws-lambda-powertools/idempotency');
const { DynamoDBPersistenceLayer } = require('@aws-lambda-powertools/idempotency/dynamodb');

console.warn = () => {};
const awsSdkV3Client = new DynamoDBClient({
  endpoint: process.argv[2],
  region: 'eu-west-1',
  credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
});
const config = new IdempotencyConfig({ eventKeyJmesPath: 'id', payloadValidationJmesPath: 'amount' });
config.registerLambdaContext({ getRemainingTimeInMillis: () => 30000 });
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: 'idem', awsSdkV3Client });

let executed = false;
const process_ = makeIdempotent(
  async (_event, result) => {
    executed = true;
    return result;
  },
  { persistenceStore, config, keyPrefix: 'interop' },
);

for await (const line of createInterface({ input: process.stdin })) {
  const { event, result } = JSON.parse(line);
  executed = false;
  let answer;
  try {
    answer = { result: await process_(event, result) };
  } catch (error) {
    answer = { error: error.name };
  }
  console.log(JSON.stringify({ executed, ...answer }));
}
