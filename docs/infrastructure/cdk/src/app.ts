// A queue, a function and the idempotency table: what `docs/templates/minimal.yaml` deploys.
//
// Build the function first: `cargo lambda build --release --arm64 --bin first_use`.

import * as path from 'node:path';

import { App, CfnParameter, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import * as logs from 'aws-cdk-lib/aws-logs';
import * as sns from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import * as sqs from 'aws-cdk-lib/aws-sqs';

import { IdempotencyTable } from './idempotency-table';

const built = path.join(__dirname, '../../../../target/lambda/first_use');
const timeout = Duration.seconds(30);

const app = new App();
const stack = new Stack(app, 'Orders');

const deadLetters = new sqs.Queue(stack, 'DeadLetterQueue', {
  enforceSSL: true,
  encryption: sqs.QueueEncryption.SQS_MANAGED,
  retentionPeriod: Duration.days(14),
});
const queue = new sqs.Queue(stack, 'Queue', {
  enforceSSL: true,
  encryption: sqs.QueueEncryption.SQS_MANAGED,
  // A message that becomes visible while the function still handles it is delivered twice.
  visibilityTimeout: Duration.seconds(6 * timeout.toSeconds()),
  retentionPeriod: Duration.days(4),
  // A delivery whose key is claimed elsewhere counts, too.
  deadLetterQueue: { queue: deadLetters, maxReceiveCount: 10 },
});

const fn = new lambda.Function(stack, 'Function', {
  code: lambda.Code.fromAsset(process.env.FUNCTION_FOLDER ?? built),
  handler: 'bootstrap',
  runtime: lambda.Runtime.PROVIDED_AL2023,
  architecture: lambda.Architecture.ARM_64,
  memorySize: 256, // the default of 128 MB has half the processor
  timeout,
  loggingFormat: lambda.LoggingFormat.JSON,
  logGroup: new logs.LogGroup(stack, 'Logs', {
    retention: logs.RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  }),
});
// Without `reportBatchItemFailures`, Lambda ignores the response and deletes failed messages.
fn.addEventSource(new SqsEventSource(queue, { batchSize: 10, reportBatchItemFailures: true }));
new IdempotencyTable(stack, 'IdempotencyTable').keepRecordsOf(fn, stack.stackName);

// Without it nobody hears of what failed: for the function these are answered invocations.
const email = new CfnParameter(stack, 'AlarmEmail', {
  description: 'Gets a mail when a message has failed every attempt.',
});
const alarms = new sns.Topic(stack, 'Alarms');
alarms.addSubscription(new EmailSubscription(email.valueAsString));
new cloudwatch.Alarm(stack, 'DeadLetterAlarm', {
  metric: deadLetters.metricApproximateNumberOfMessagesVisible({
    period: Duration.minutes(1),
    statistic: 'Maximum',
  }),
  threshold: 0,
  comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
  evaluationPeriods: 1,
  treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
}).addAlarmAction(new SnsAction(alarms));

app.synth();
