"""Hadoop's settings on one machine, without those of programs that do not run on it.

Spark sends Hadoop's settings to whoever reads or writes a file: in every micro-batch once for each
source, for the state and for the sink. There are eleven hundred of them, written one by one, each
with the compressed name of the file that it came from: ten milliseconds of CPU time each time. Two
thirds are defaults of YARN, of MapReduce's jobs and of servers. Nobody asks for these where there
is only Spark, and whoever does has the same default in its code, as all of Hadoop has.

So they are forgotten, in the settings of this session alone. What somebody has set is kept. If
Hadoop reads its files of defaults once more, they are back, and nothing is lost but the time.
"""

from __future__ import annotations

import contextlib

from pyspark.sql import SparkSession

from penstock.spark.private_spark import JAVA_ERROR, hadoop_settings, java_array, java_of

_NEEDLESS = (
    r"^(yarn|ha|hadoop\.(http|registry|zk)|"
    r"mapreduce\.(am|client|cluster|ifile|job|jobhistory|jvm|map|reduce|shuffle|task))\..*"
)
_FORGET = """
    java.util.Iterator names = settings.getValByRegex(needless).keySet().iterator();
    while (names.hasNext()) {
        String name = (String) names.next();
        String[] origins = settings.getPropertySources(name);
        if (origins != null && origins[origins.length - 1].endsWith("-default.xml")) {
            settings.unset(name);
        }
    }
"""


def forget_needless_defaults(spark: SparkSession) -> None:
    """Make the settings that ``spark`` sends around fewer."""
    java, settings = java_of(spark), hadoop_settings(spark)
    # Both have defaults of their own, which are read, with all others, when they are first asked.
    java.org.apache.hadoop.mapred.JobConf(False)
    java.org.apache.hadoop.fs.FileSystem.getLocal(settings)
    kinds = settings.getClass(), java.Class.forName("java.lang.String")
    script = java.org.codehaus.janino.ScriptEvaluator()
    script.setParameters(
        java_array(spark, java.String, "settings", "needless"),
        java_array(spark, java.Class, *kinds),
    )
    with contextlib.suppress(JAVA_ERROR):  # Then they are sent around as ever.
        script.cook(_FORGET)
        script.evaluate(java_array(spark, java.Object, settings, _NEEDLESS))
