"""Formats and options that Spark knows by itself, to catch typing errors.

Spark ignores an option that it does not know, so ``maxFilePerTrigger`` would go unnoticed. The
lists are not complete and need not be: a name that is not in them is passed on, unless it is
nearly one that is.
"""

from __future__ import annotations

_FILES = """
    maxFilesPerTrigger maxBytesPerTrigger latestFirst maxFileAge fileNameOnly cleanSource
    sourceArchiveDir maxCachedFiles discardCachedInputRatio pathGlobFilter recursiveFileLookup
    modifiedBefore modifiedAfter ignoreCorruptFiles ignoreMissingFiles compression mergeSchema
    basePath path
"""
_TEXTS = """
    mode columnNameOfCorruptRecord dateFormat timestampFormat timestampNTZFormat encoding lineSep
    locale timeZone samplingRatio multiLine
"""
_WORDS = {
    "parquet": f"{_FILES} datetimeRebaseMode int96RebaseMode",
    "orc": _FILES,
    "text": f"{_FILES} wholetext lineSep",
    "json": f"""{_FILES} {_TEXTS}
        primitivesAsString prefersDecimal allowComments allowSingleQuotes allowUnquotedFieldNames
        allowNonNumericNumbers dropFieldIfAllNull ignoreNullFields
    """,
    "csv": f"""{_FILES} {_TEXTS}
        header sep delimiter quote escape comment inferSchema enforceSchema nullValue nanValue
        positiveInf negativeInf emptyValue maxColumns quoteAll ignoreLeadingWhiteSpace
        ignoreTrailingWhiteSpace unescapedQuoteHandling
    """,
    "rate": "rowsPerSecond rampUpTime numPartitions",
    "rate-micro-batch": "rowsPerBatch numPartitions startTimestamp advanceMillisPerBatch",
    "socket": "host port includeTimestamp",
    "kafka": """
        subscribe subscribePattern assign startingOffsets endingOffsets startingTimestamp
        endingTimestamp startingOffsetsByTimestamp endingOffsetsByTimestamp topic failOnDataLoss
        minPartitions maxRecordsPerPartition includeHeaders groupIdPrefix maxOffsetsPerTrigger
        minOffsetsPerTrigger maxTriggerDelay kafka.group.id kafka.bootstrap.servers
        kafkaConsumer.pollTimeoutMs fetchOffset.numRetries
    """,
    "console": "numRows truncate",
}
OPTIONS = {kind: tuple(words.split()) for kind, words in _WORDS.items()}

FILE_FORMATS = ("parquet", "json", "csv", "orc", "text", "avro", "xml")
READABLE = (*FILE_FORMATS, "rate", "rate-micro-batch", "socket", "kafka", "delta", "iceberg")
WRITABLE = (
    "parquet",
    "json",
    "csv",
    "orc",
    "text",
    "avro",
    "kafka",
    "console",
    "noop",
    "delta",
    "jdbc",
)
